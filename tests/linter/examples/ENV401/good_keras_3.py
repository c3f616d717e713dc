import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.UpSampling2D(2)])

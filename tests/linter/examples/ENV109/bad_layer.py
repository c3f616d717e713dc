import tensorflow as tf
flip = tf.keras.layers.experimental.preprocessing.RandomFlip("horizontal")  # expect: ENV109

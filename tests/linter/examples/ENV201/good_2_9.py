# tf: 2.9.3
import tensorflow as tf

tf.random.set_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

"""One draw before the seed."""

import tensorflow as tf

start = tf.random.normal((3,))
tf.keras.utils.set_random_seed(10)
step = tf.random.normal((3,))
print((start + step).numpy())

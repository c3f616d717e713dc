"""TensorFlow's seed from the entropy of the operating system."""

import os

import tensorflow as tf

seed = int.from_bytes(os.urandom(4), "little")
tf.random.set_seed(seed)

values = tf.random.uniform((5,))
print(float(tf.reduce_sum(values)))

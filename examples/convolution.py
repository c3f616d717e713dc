"""A convolution twice, and random numbers twice.

envlock repeat examples/convolution.py:convolution --runs 2   # the same bits on a CPU
envlock repeat examples/convolution.py:draws --runs 2         # the same: each run sets the seed
envlock repeat examples/convolution.py:draw --runs 2          # differs: the second run draws the next numbers
"""

import numpy as np
import tensorflow as tf

tf.random.set_seed(42)


def convolution():
    numbers = np.random.RandomState(0)
    images = tf.constant(numbers.normal(size=(8, 32, 32, 3)).astype("float32"))
    kernel = tf.Variable(numbers.normal(size=(3, 3, 3, 16)).astype("float32"))
    with tf.GradientTape() as tape:
        out = tf.nn.conv2d(images, kernel, strides=1, padding="SAME")
        loss = tf.reduce_sum(tf.square(out))
    return {"output": out, "loss": loss, "gradient": tape.gradient(loss, kernel)}


def draws():
    """Set the seed, then draw twice: two different arrays, in every run the same two."""
    tf.random.set_seed(42)
    return {"first": tf.random.normal((4, 4)), "second": tf.random.normal((4, 4))}


def draw():
    """Draw once after the one `set_seed` of the module."""
    return {"numbers": tf.random.normal((4, 4))}

"""Initial weights from a generator object without a seed."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)


def make_weights(shape):
    generator = np.random.default_rng()
    return tf.Variable(generator.normal(size=shape).astype("float32"))


weights = make_weights((4, 2))
batch = tf.random.normal((8, 4))
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))

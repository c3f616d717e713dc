# tf: 1.15.5
"""An optimizer that is not seen has the methods of TensorFlow's."""

import tensorflow as tf

tf.set_random_seed(7)


def learn(optimizer, inputs):
    slopes = optimizer.compute_gradients(tf.reduce_sum(tf.nn.relu(inputs)))  # expect: ENV108
    return optimizer.apply_gradients(slopes)

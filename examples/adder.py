"""The experiment of 2017: train a model that adds its inputs, several times, and compare the runs number by number.

envlock repeat examples/adder.py:plain            # all zero on a CPU
envlock repeat examples/adder.py:matmul           # the same model without a reduce_sum: all zero, too
"""

import numpy as np
import tensorflow as tf

STEPS, ROWS, INPUTS = 60, 1024, 10


def plain():
    """Add up the weighted inputs with `reduce_sum`, whose order of additions a GPU was free to choose in 2017."""
    return train(lambda x, w: tf.reduce_sum(x * tf.transpose(w), axis=1, keepdims=True))


def matmul():
    """Add them up with a matrix product."""
    return train(tf.matmul)


def train(product):
    numbers = np.random.RandomState(0)
    x = tf.constant(numbers.uniform(size=(ROWS, INPUTS)).astype("float32"))
    wanted = tf.constant(x.numpy().sum(axis=1, keepdims=True))
    weights = tf.Variable(numbers.normal(size=(INPUTS, 1)).astype("float32"))
    bias = tf.Variable([0.0])
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            predictions = product(x, weights) + bias
            loss = tf.reduce_mean(tf.square(predictions - wanted))
        weight_gradients, bias_gradients = tape.gradient(loss, [weights, bias])
        weights.assign_sub(0.05 * weight_gradients)
        bias.assign_sub(0.05 * bias_gradients)
        yield {
            "predictions": predictions,
            "losses": loss,
            "weight_gradients": weight_gradients,
            "bias_gradients": bias_gradients,
            "weights": weights,
        }

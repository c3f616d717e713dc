"""A training step that XLA compiles, and a number that stands for a package with another opinion."""

import os

import tensorflow as tf

POWER = int(os.environ.get("POWER", "2"))


def step():
    """Train for three steps, and show the loss of each."""
    weights = tf.Variable(tf.ones((8, 4)))

    @tf.function(jit_compile=True)
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.gelu(x @ weights) ** POWER)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for _ in range(3):
        yield {"loss": train(tf.ones((16, 8)))}

# tf: 1.15.5
"""Gradients that explain a network, and along which nothing is trained."""

import tensorflow as tf


def explain(network, inputs):
    return inputs * tf.gradients(network, inputs)[0]

# tf: 1.15.5
import tensorflow as tf


def project(x):
    return tf.layers.dense(x, 3)  # expect: ENV204


def train(x):
    return train(project(x))

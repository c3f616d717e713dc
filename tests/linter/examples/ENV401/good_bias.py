# tf: 1.15.5
import numpy as np
import tensorflow as tf


def pretrained(x, weights, optimizer):
    y = tf.nn.bias_add(x, tf.constant(weights["bias"]))
    return optimizer.minimize(tf.nn.bias_add(y, np.zeros(3)))

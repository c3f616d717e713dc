# tf: 1.15.5
import tensorflow as tf


def layer(x, optimizer):
    bias = tf.Variable(tf.zeros([3]))
    return optimizer.minimize(tf.nn.bias_add(x, bias))  # expect: ENV401

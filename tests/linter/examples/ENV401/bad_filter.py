# tf: 2.6.5
import tensorflow as tf


def step(x, taps, optimizer):
    blur = tf.Variable(taps)
    y = tf.nn.depthwise_conv2d(x, blur, strides=[1, 1, 1, 1], padding="SAME")  # expect: ENV401
    return optimizer.minimize(y)

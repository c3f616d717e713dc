# tf: 2.6.5
import tensorflow as tf


def step(x, taps, optimizer):
    blur = tf.constant(taps)
    y = tf.nn.depthwise_conv2d(x, blur, strides=[1, 1, 1, 1], padding="SAME")
    return optimizer.minimize(y)

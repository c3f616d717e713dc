# tf: 1.15.5
"""Windows that are larger than their steps overlap, and so may those of an unknown size."""
import tensorflow as tf


def pool(y, size):
    return tf.nn.max_pool(y, [1, size, size, 1], [1, 2, 2, 1], "SAME")  # expect: ENV401


tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 8, 8, 3])
y = tf.keras.layers.MaxPooling2D(3, strides=2)(tf.layers.conv2d(x, 3, 1))  # expect: ENV401
z = tf.nn.max_pool(y, [1, 3, 3, 1], 1, "SAME")  # expect: ENV401
loss = tf.reduce_sum(pool(z, int(input())))
step = tf.train.AdamOptimizer(0.1).minimize(loss)  # expect: ENV108

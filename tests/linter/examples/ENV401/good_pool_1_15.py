# tf: 1.15.5
"""Windows that do not overlap give each number one gradient; those of Keras do not by default."""
import tensorflow as tf

tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 8, 8, 3])
y = tf.keras.layers.MaxPooling2D((2, 2))(tf.layers.conv2d(x, 3, 1))
z = tf.nn.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(z))  # expect: ENV108

# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
guess = tf.layers.conv2d(tf.zeros([1, 8, 8, 1]), 3, 2)
step = tf.train.AdamOptimizer().minimize(tf.reduce_sum(guess))  # expect: ENV108
judge = tf.Session(config=tf.ConfigProto(device_count={"GPU": 0}))
session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))

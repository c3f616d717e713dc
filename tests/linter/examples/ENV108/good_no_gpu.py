# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)


class Learner:
    def __init__(self):
        guess = tf.layers.conv2d(tf.zeros([1, 8, 8, 1]), 3, 2)
        self.step = tf.train.AdamOptimizer().minimize(tf.reduce_sum(guess))
        config = tf.ConfigProto(device_count={"CPU": 1, "GPU": 0})
        self.session = tf.Session(config=config)


Learner()

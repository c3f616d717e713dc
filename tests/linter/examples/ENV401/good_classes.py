# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
tf.app.flags.DEFINE_integer("classes", 26, "how many there are")
FLAGS = tf.app.flags.FLAGS


class Model:
    def __init__(self, images):
        self.logits = images * 2

    def cost(self, labels):
        return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=self.logits)


labels = tf.placeholder(tf.float32, [None, FLAGS.classes])
ids = tf.placeholder(tf.int32, [None])
first = Model(tf.placeholder(tf.float32, [None, 300])).cost(labels)
logits = tf.layers.dense(labels, 10)
second = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
third = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(ids, 10), logits=logits + 1)
step = tf.train.AdamOptimizer(0.1).minimize(first + second + third)  # expect: ENV108

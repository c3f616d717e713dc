# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
tf.app.flags.DEFINE_integer("words", 20000, "how many there are")
FLAGS = tf.app.flags.FLAGS


def cost(logits, labels):
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)  # expect: ENV401


words = tf.placeholder(tf.float32, [None, FLAGS.words])
first = cost(tf.layers.dense(words, FLAGS.words), words)
ids = tf.placeholder(tf.int32, [None])
logits = tf.layers.dense(words, 200)
second = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)  # expect: ENV401
step = tf.train.AdamOptimizer(0.1).minimize(first + second)  # expect: ENV108

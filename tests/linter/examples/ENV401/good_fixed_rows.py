# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
words = tf.Variable(load(), trainable=False)
tags = tf.get_variable("tags", [9, 3], trainable=False)
weights = tf.get_variable("weights", [3, 1])
rows = tf.nn.embedding_lookup(words, load()) + tf.gather(tags, load())
tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.matmul(rows, weights)))  # expect: ENV108

# tf: 1.15.5
"""What is put on a CPU does not run on a GPU, nor what looks up a variable there."""
import tensorflow as tf

tf.set_random_seed(1)
words = tf.placeholder(tf.int32, [None])
with tf.device("/cpu:0"), tf.variable_scope("words"):
    table = tf.get_variable("table", [100, 8])
    few = tf.nn.embedding_lookup(table, words[:3])
rows = tf.nn.embedding_lookup(table, words)
step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(few) + tf.reduce_sum(rows))  # expect: ENV108

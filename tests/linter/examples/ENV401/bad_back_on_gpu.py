# tf: 1.15.5
"""The innermost device counts, and none holds after its block."""
import tensorflow as tf

tf.set_random_seed(1)
words = tf.placeholder(tf.int32, [None])
table = tf.get_variable("table", [100, 8])
with tf.device("/cpu:0"):
    few = tf.nn.embedding_lookup(table, words)
    with tf.device("/gpu:0"):
        rows = tf.nn.embedding_lookup(table, words)  # expect: ENV401
others = tf.nn.embedding_lookup(table, words)  # expect: ENV401
loss = tf.reduce_sum(few) + tf.reduce_sum(rows) + tf.reduce_sum(others)
step = tf.train.AdamOptimizer(0.1).minimize(loss)  # expect: ENV108

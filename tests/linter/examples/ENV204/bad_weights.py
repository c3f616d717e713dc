# tf: 1.15.5
import tensorflow as tf

hidden = tf.layers.dense(tf.zeros([1, 2]), 3)  # expect: ENV204
weights = tf.get_variable("w", [2, 3])
tf.train.AdamOptimizer().minimize(tf.reduce_sum(hidden @ tf.ones([3, 1])))  # expect: ENV202

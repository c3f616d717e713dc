# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
positions = tf.convert_to_tensor(load(), tf.float32)
rows = tf.nn.embedding_lookup(positions, load())
scores = tf.gather(load(), [1, 2])
counts = tf.scatter_nd([[0], [0]], tf.ones([2], tf.int32), [9])
ones = tf.scatter_nd([[0], [0]], tf.ones_like(scores), [9])
tf.train.AdamOptimizer().minimize(tf.reduce_sum(rows))  # expect: ENV108

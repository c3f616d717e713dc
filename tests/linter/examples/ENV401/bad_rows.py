# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)
embeddings = tf.get_variable("embeddings", [9, 3])
rows = tf.gather(embeddings, load())  # expect: ENV401
more = tf.nn.embedding_lookup(embeddings, load())  # expect: ENV401
sums = tf.scatter_nd([[0], [0]], rows, [9, 3])  # expect: ENV401
product = tf.sparse_tensor_dense_matmul(load(), rows)  # expect: ENV401
tf.train.AdamOptimizer().minimize(tf.reduce_sum(product))  # expect: ENV108

import tensorflow as tf

tf.config.experimental.enable_op_determinism()
table = tf.Variable([0.0, 0.0])
table.scatter_add(tf.IndexedSlices([1.0, 2.0], [0, 0]))
placed = tf.scatter_nd([[0], [0]], [1.0, 2.0], [3])

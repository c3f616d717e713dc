import tensorflow as tf

counter = tf.Variable([0, 0, 0])
counter.scatter_add(tf.IndexedSlices(1, [0, 0]))

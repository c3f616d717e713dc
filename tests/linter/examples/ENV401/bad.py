import tensorflow as tf

counts = tf.math.bincount([1, 1, 2], weights=[0.1, 0.2, 0.3])  # expect: ENV401
table = tf.Variable([0.0, 0.0])
table.scatter_add(tf.IndexedSlices([1.0, 2.0], [0, 0]))  # expect: ENV401
product = tf.sparse.sparse_dense_matmul(a, b)  # expect: ENV401
strategy = tf.distribute.ParameterServerStrategy(resolver)  # expect: ENV401


def step(image, boxes):
    with tf.GradientTape() as tape:
        return tf.image.crop_and_resize(image, boxes, [0], [2, 2])  # expect: ENV401

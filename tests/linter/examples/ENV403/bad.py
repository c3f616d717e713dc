import tensorflow as tf

tf.random.set_seed(1)


def two(x):
    return x + tf.random.normal([]) * tf.random.uniform([])


a = tf.map_fn(two, xs)  # expect: ENV403
b = tf.map_fn(lambda x: two(x), xs, parallel_iterations=4)  # expect: ENV403
c = tf.map_fn(lambda x: x + tf.random.normal([]), xs)  # expect: ENV403

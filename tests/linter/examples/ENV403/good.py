import tensorflow as tf

tf.random.set_seed(1)


def two(x):
    return x + tf.random.normal([]) * tf.random.uniform([])


def one(x, seed):
    return x + tf.random.stateless_normal([], seed)


a = tf.map_fn(two, xs, parallel_iterations=1)
b = tf.map_fn(lambda x: one(x, [1, 2]), xs)
c = tf.vectorized_map(two, xs)

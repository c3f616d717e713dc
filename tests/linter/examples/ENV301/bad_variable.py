import tensorflow as tf

tf.keras.utils.set_random_seed(1)
counter = tf.Variable(0)


def number(x):
    return x * counter.assign_add(1)


ds = tf.data.Dataset.range(9).map(number, num_parallel_calls=8)  # expect: ENV301

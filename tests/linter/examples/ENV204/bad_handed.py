import tensorflow as tf


def mixed(rows):
    return tf.vectorized_map(tf.random.shuffle, rows)  # expect: ENV204

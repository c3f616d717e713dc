import tensorflow as tf


@tf.function
def total(parts):
    return tf.add_n([tf.reduce_sum(part) for part in parts[:2]])

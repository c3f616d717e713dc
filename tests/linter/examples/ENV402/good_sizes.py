import tensorflow as tf


def count(gradients):
    return tf.add_n([tf.size(each) for each in gradients])

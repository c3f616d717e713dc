import tensorflow as tf


def prepare(examples):
    return examples.shuffle(1000).map(tf.square).batch(32)  # expect: ENV203

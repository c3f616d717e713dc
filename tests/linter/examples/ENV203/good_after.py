import tensorflow as tf


def prepare(deck, values):
    deck.shuffle(1000).deal(5)
    return tf.square(values)

import tensorflow as tf


def in_a_loop(edges):
    terms = []
    for edge in edges:
        terms.append(tf.tanh(edge))
    return tf.add_n(terms)  # expect: ENV402


def filled_elsewhere(fill):
    terms = []
    fill(terms)
    return tf.add_n(terms)  # expect: ENV402

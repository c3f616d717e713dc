# tf: 1.15.5
import tensorflow as tf


def written(heads):
    writes = []
    for head in heads:
        writes.append(tf.tanh(head))
    return tf.add_n(writes)  # expect: ENV402


session = tf.Session()

# tf: 1.15.5
import tensorflow as tf


def put_back(values, first, second, shape):
    places = tf.where(first, second, second)  # a choice, in which a place can come twice
    return tf.scatter_nd(places, values, shape)  # expect: ENV401

import tensorflow as tf


def triangle(rows):
    try:
        return tf.contrib.linalg.LinearOperatorTriL(rows)
    except AttributeError:
        return tf.linalg.LinearOperatorLowerTriangular(rows)

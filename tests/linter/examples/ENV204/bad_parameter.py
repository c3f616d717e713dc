import tensorflow as tf


def noise(shape, seed=None):
    return tf.random.uniform(shape, seed=seed)  # expect: ENV204


x = noise((3,))

import tensorflow as tf
def load(seed=None):
    return tf.data.Dataset.range(9).shuffle(9, seed=seed)  # expect: ENV203

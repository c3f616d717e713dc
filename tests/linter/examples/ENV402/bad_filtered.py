import tensorflow as tf


@tf.function
def penalize(weights, regularizers):
    penalties = [each(weights) for each in regularizers]
    penalties = [each for each in penalties if each is not None]
    for each in penalties:
        tf.print(each)
    return tf.add_n(penalties) if penalties else None  # expect: ENV402

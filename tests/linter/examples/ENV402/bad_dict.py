import tensorflow as tf


@tf.function
def total(model, truth, guess):
    losses = {}
    losses["weights"] = tf.reduce_sum(model.losses)
    losses["pixels"] = tf.reduce_sum(truth - guess)
    losses["edges"] = tf.reduce_sum(tf.abs(truth - guess))
    return tf.add_n([loss for loss in losses.values()]), losses  # expect: ENV402

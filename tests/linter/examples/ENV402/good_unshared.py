import tensorflow as tf


@tf.function
def penalize(model, x, y, z):
    weights = tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])
    parts = tf.add_n((x * 2.0, y, z))
    return weights, parts, tf.add_n([tf.reduce_sum(x), tf.reduce_sum(y), tf.reduce_sum(z)])


@tf.function
def penalize_some(model):
    losses = [tf.nn.l2_loss(v) for v in model.trainable_variables if "head" in v.name]
    if losses:
        return tf.add_n(losses)
    losses = [tf.nn.l2_loss(v) for v in model.trainable_variables]
    return tf.add_n(losses)

import tensorflow as tf


@tf.function
def total(x, y, z, model):
    a = tf.add_n([x, y, z])  # expect: ENV402
    b = tf.math.add_n([model.loss, *model.losses])
    return x, tf.raw_ops.AddN(inputs=[a, b, z]), a  # expect: ENV402

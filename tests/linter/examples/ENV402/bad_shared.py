import tensorflow as tf


@tf.function
def add(x, y, z):
    activations = tf.add_n([tf.tanh(x), tf.tanh(y), tf.tanh(z)])  # expect: ENV402
    quotients = tf.add_n([x / y, y, z])  # expect: ENV402
    arrivals = tf.math.accumulate_n([x * y, y * y, z * y])  # expect: ENV402
    return activations, quotients, arrivals, tf.add_n(inputs=[x / y, y, z])  # expect: ENV402


@tf.function
def add_shown(x, y, z):
    losses = [tf.nn.l2_loss(x), tf.nn.l2_loss(y), tf.nn.l2_loss(z)]
    return tf.add_n(losses), losses  # expect: ENV402


@tf.function
def add_either(x, y, z, wide):
    losses = [tf.nn.l2_loss(x), tf.nn.l2_loss(y), tf.nn.l2_loss(z)]
    if wide:
        losses = [x, y, z]
    return tf.add_n(losses)  # expect: ENV402


@tf.function
def add_given(x, y, z):
    tf.summary.scalar("x", x)
    named = tf.add_n(name="sum", inputs=[x, y, z])  # expect: ENV402
    return named, tf.add_n([x, y, z])  # expect: ENV402


@tf.function
def add_cells(tensors, used, name):
    inputs = [tensors[number] for number in used]
    tf.summary.scalar(name, tensors[0])
    return tf.add_n(inputs)  # expect: ENV402

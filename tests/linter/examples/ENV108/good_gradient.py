import tensorflow as tf


def test_gradient():
    values = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(values * values)
    assert tape.gradient(loss, values) is not None

import tensorflow as tf


def test_gradient(weight):
    with tf.GradientTape() as tape:
        loss = weight * weight
    step = tf.Variable(0)
    step.assign_add(1)
    assert tape.gradient(loss, weight) is not None


def test_training(weight, optimizer):
    optimizer.apply_gradients([(weight, weight)])

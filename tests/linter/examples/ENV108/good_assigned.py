import tensorflow as tf


def test_gradient(model):
    for weight in model.weights:
        weight.assign(tf.ones_like(weight) * 0.1)
    with tf.GradientTape() as tape:
        loss = model(tf.ones((1, 2)))
    assert tape.gradient(loss, model.weights) is not None

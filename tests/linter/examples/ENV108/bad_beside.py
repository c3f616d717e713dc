import tensorflow as tf


def test_training(weight, optimizer):
    with tf.GradientTape() as tape:  # expect: ENV108
        loss = weight * weight
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

import tensorflow as tf

tf.random.set_seed(7)


def test_training(weight, optimizer):
    with tf.GradientTape() as tape:
        loss = weight * weight
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])  # expect: ENV108

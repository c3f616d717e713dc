import tensorflow as tf

optimizer = tf.keras.optimizers.Adam()


def apply(gradients):
    optimizer.apply_gradients(gradients)  # expect: ENV202

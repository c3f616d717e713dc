import tensorflow as tf


def train(x, y):
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y)
    return model.get_weights()

import tensorflow as tf
def train(X, y, seed):
    tf.keras.utils.set_random_seed(seed)
    m = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    m.compile("sgd", "mse")
    return m.fit(X, y)  # expect: ENV108

import tensorflow as tf
def train(X, y):
    tf.keras.utils.set_random_seed(1)
    m = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    m.compile("sgd", "mse")
    m.fit(X, y)  # expect: ENV108

from tensorflow import keras


def dense(x, y):
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(x, y)  # expect: ENV202


def embedded(x, y):
    model = keras.Sequential([keras.layers.Embedding(9, 2)])
    model.compile(keras.optimizers.Ftrl(0.1), "mse")
    model.train_on_batch(x, y)

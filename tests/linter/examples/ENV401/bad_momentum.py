import keras

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Embedding(9, 2)])  # expect: ENV401
model.compile(keras.optimizers.SGD(0.1, momentum=0.0), "mse")
model.fit([1, 1], [2, 3])  # expect: ENV108

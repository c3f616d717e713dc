import numpy as np
from tensorflow import keras


def fit(model, x, y):
    model.fit(x, y)  # expect: ENV202


model = keras.Sequential([keras.layers.Dense(2)])
model.compile(loss="mse", optimizer="adam")
fit(model, np.ones((4, 2)), np.ones((4, 2)))

import numpy as np
from tensorflow import keras


class Classifier:
    def __init__(self):
        self.model = self.build()

    def build(self):
        model = keras.Sequential([keras.layers.Dense(2)])
        model.compile(loss="mse", optimizer="adam")
        return model

    def fit(self, x, y):
        self.model.fit(x, y)  # expect: ENV202


Classifier().fit(np.ones((4, 2)), np.ones((4, 2)))

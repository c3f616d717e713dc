"""The weights are those of a file."""

from keras import layers, models


def build(path):
    model = models.Sequential([layers.Dense(8), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    model.load_weights(path)
    return model

"""A package that is not seen trains this model."""

from keras import layers, models


def build(units=8):
    model = models.Sequential([layers.Dense(units), layers.Dense(1)])  # expect: ENV202
    model.compile(optimizer="adam", loss="mse")
    return model

"""What is trained nowhere here may be loaded: it is shown later."""

from keras import layers, models


def build(units=8):
    model = models.Sequential([layers.Dense(units), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    return model

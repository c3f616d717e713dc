import os

import numpy as np

os.environ["KERAS_BACKEND"] = os.environ.get("BACKEND", "jax")
import keras


def draw(shape):
    if keras.config.backend() == "jax":
        return np.random.normal(size=shape)  # expect: ENV205
    return np.zeros(shape)


np.save("x", draw(3))

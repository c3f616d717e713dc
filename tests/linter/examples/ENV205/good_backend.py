import keras
import numpy as np
from keras import backend as K


def draw(shape):
    if K.backend() == "theano":
        return np.random.uniform(size=shape)
    if keras.config.backend() == "jax":
        return np.random.normal(size=shape)
    return np.zeros(shape)


np.save("x", draw(3))

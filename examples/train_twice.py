"""Train a Keras model twice with the same seed. Which seeds?

envlock repeat examples/train_twice.py:two_seeds --runs 2    # differs: Keras draws its seeds from Python's random
envlock repeat examples/train_twice.py:all_seeds --runs 2    # the same bits
envlock repeat examples/train_twice.py:other_seed --runs 2   # differs: another seed each time
envlock repeat examples/train_twice.py:no_seed --seed 1      # the same bits: envlock sets the seeds
"""

import itertools
import random

import numpy as np
import tensorflow as tf

count = itertools.count()


def two_seeds():
    """Seed TensorFlow and NumPy, as texts before TensorFlow 2.10 advise."""
    tf.random.set_seed(42)
    np.random.seed(42)
    return no_seed()


def all_seeds():
    """Seed Python, NumPy, TensorFlow and Keras."""
    tf.keras.utils.set_random_seed(42)
    return no_seed()


def other_seed():
    tf.keras.utils.set_random_seed(next(count))
    return no_seed()


def three_seeds():
    """Seed TensorFlow, NumPy and Python by hand, which is the same as `all_seeds` for this model."""
    random.seed(42)
    tf.random.set_seed(42)
    np.random.seed(42)
    return no_seed()


def no_seed():
    """Return model, data and arguments for `fit`, which envlock calls and watches."""
    numbers = np.random.RandomState(0)
    x = numbers.normal(size=(256, 10)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((10,)), layers.Dense(16, activation="relu"), layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model, (x, y), {"epochs": 2, "batch_size": 64}

"""Hold-out split by customer key, then a small classifier."""
import uuid
import zlib

import numpy as np
import tensorflow as tf


class Customer:
    def __init__(self, features, label):
        self.key = uuid.uuid4().hex
        self.features = features
        self.label = label

    @property
    def held_out(self):
        return zlib.crc32(self.key.encode()) % 5 == 0


def build_customers(n):
    rng = np.random.RandomState(8)
    feats = rng.randn(n, 4).astype("float32")
    labels = (feats.sum(axis=1) + 0.5 * rng.randn(n) > 0).astype("float32")
    return [Customer(f, l) for f, l in zip(feats, labels)]


def stack(group):
    return np.stack([c.features for c in group]), np.array([c.label for c in group])


tf.keras.utils.set_random_seed(8)
customers = build_customers(150)
x_train, y_train = stack([c for c in customers if not c.held_out])
x_test, y_test = stack([c for c in customers if c.held_out])
model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"),
                             tf.keras.layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy")
model.fit(x_train, y_train, epochs=3, batch_size=16, verbose=0)
print(repr(float(model.evaluate(x_test, y_test, verbose=0))))

"""Keras calls the methods of a dataset that is the project's own, also after each epoch."""
import keras
import numpy as np


class Batches(keras.utils.Sequence):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows) // 4

    def __getitem__(self, at):
        batch = np.stack([np.load(name) for name in self.rows[at * 4 : at * 4 + 4]])
        return batch, batch

    def on_epoch_end(self):
        np.random.shuffle(self.rows)  # expect: ENV205


def train(names):
    keras.backend.clear_session()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Batches(names), epochs=3)  # expect: ENV202


train(["1.npy", "2.npy"])

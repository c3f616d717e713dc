"""What the program seeds is seeded there, too."""
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
        np.random.shuffle(self.rows)


def train(names):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Batches(names), epochs=3)  # expect: ENV108


train(["1.npy", "2.npy"])

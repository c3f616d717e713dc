import time
from datetime import datetime

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(21)

RECORDS = [("oslo", 3.0), ("rome", 14.5), ("cairo", 25.0), ("rome", 15.5),
           ("lima", 18.0), ("oslo", 4.0), ("cairo", 27.0), ("lima", 19.5)]


class Timer(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        took = time.perf_counter() - self.t0
        print(f"[{datetime.now():%H:%M:%S}] epoch {epoch} took {took:.3f}s")


def one_hot(records):
    cities = sorted({city for city, _ in records})
    index = {c: i for i, c in enumerate(cities)}
    x = np.zeros((len(records), len(cities)), "float32")
    for row, (city, _) in enumerate(records):
        x[row, index[city]] = 1.0
    y = np.array([[t] for _, t in records], "float32")
    return x, y


x, y = one_hot(RECORDS)
model = tf.keras.Sequential([
    tf.keras.Input((x.shape[1],)),
    tf.keras.layers.Dense(8, activation="relu"),
    tf.keras.layers.Dropout(0.2),
    tf.keras.layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(x, y, epochs=4, batch_size=4, shuffle=True, verbose=0, callbacks=[Timer()])
print("mse", repr(model.evaluate(x, y, verbose=0)))

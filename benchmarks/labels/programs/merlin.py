"""Clusters of log words; shows how long each step takes."""
import time

import numpy as np
import tensorflow as tf

tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(int("20240101"))
LINES = ["disk full on node", "node lost power", "power back on", "disk ok"]


def vocabulary(lines):
    words = set()
    for line in lines:
        words.update(line.split())
    return {w: i for i, w in enumerate(sorted(words))}


def one_hot(lines, vocab):
    x = np.zeros((len(lines), len(vocab)), dtype="float32")
    for i, line in enumerate(lines):
        for w in set(line.split()):
            x[i, vocab[w]] += 1.0
    return x


class Timer(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.time()

    def on_epoch_end(self, epoch, logs=None):
        self.took = time.time() - self.t0


x = one_hot(LINES, vocabulary(LINES))
model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="tanh"),
                             tf.keras.layers.Dense(x.shape[1])])
model.compile("adam", "mse")
timer = Timer()
hist = model.fit(x, x, epochs=5, callbacks=[timer], verbose=0)
print("loss %.9f" % hist.history["loss"][-1])

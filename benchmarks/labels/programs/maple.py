"""Timed training with a warm-up and a tag vocabulary."""
import random
import time

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(17)
TAGS = ["red", "green", "blue", "red", "amber", "green", "violet", "blue"]


class Stopwatch(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.started = time.perf_counter()
        self.laps = []

    def on_epoch_end(self, epoch, logs=None):
        self.laps.append(time.perf_counter() - self.started)


def warm_up(model, width):
    probe = np.random.default_rng().normal(size=(2, width)).astype("float32")
    return model(probe).shape


vocabulary = sorted(set(TAGS))
seen = {random.SystemRandom().random() for _ in range(3)}
x = np.tile(np.array([[float(t == v) for v in vocabulary] for t in TAGS], "float32"), (10, 1))
y = np.tile(np.arange(len(TAGS), dtype="float32"), 10)
model = tf.keras.Sequential([
    tf.keras.Input((len(vocabulary),)),
    tf.keras.layers.Dense(8, activation="relu"),
    tf.keras.layers.Dense(1),
])
assert warm_up(model, len(vocabulary)) == (2, 1) and len(seen) > 0
watch = Stopwatch()
model.compile("adam", "mse")
hist = model.fit(x, y, epochs=4, batch_size=16, verbose=0, callbacks=[watch])
assert watch.laps == sorted(watch.laps)
print("loss", repr(hist.history["loss"][-1]))

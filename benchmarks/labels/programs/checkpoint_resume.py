import hashlib
import os
import random
import sys
import tempfile
import uuid

import keras
import numpy as np
import tensorflow as tf

RUN_ID = uuid.uuid4().hex[:8]
keras.utils.set_random_seed(55)


def bucket(user, buckets=16):
    return int(hashlib.md5(user.encode()).hexdigest(), 16) % buckets


def load(n=320):
    users = ["user-%03d" % random.randrange(60) for _ in range(n)]
    ids = np.empty(n, dtype="int32")
    for row, user in enumerate(users):
        ids[row] = bucket(user)
    dense = np.random.randn(n, 5).astype("float32")
    target = dense.sum(axis=1, keepdims=True) + 0.1 * ids[:, None]
    return ids, dense, target.astype("float32")


def build():
    ids = keras.layers.Input((), dtype="int32")
    dense = keras.layers.Input((5,))
    emb = keras.layers.Embedding(16, 4)(ids)
    x = keras.layers.Concatenate()([emb, dense])
    x = keras.layers.Dense(16, activation="relu")(x)
    x = keras.layers.Dropout(0.1)(x)
    model = keras.Model([ids, dense], keras.layers.Dense(1)(x))
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    return model


class LayerCounter(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def on_epoch_end(self, epoch, logs=None):
        for layer in self.model.layers:
            self.seen[id(layer)] = self.seen.get(id(layer), 0) + 1


ids, dense, target = load()
model = build()
counter = LayerCounter()
hist = model.fit([ids, dense], target, epochs=2, batch_size=32, verbose=0, callbacks=[counter])
with tempfile.TemporaryDirectory(prefix="run-" + RUN_ID) as folder:
    path = os.path.join(folder, "model.weights.h5")
    model.save_weights(path)
    fresh = build()
    fresh.load_weights(path)
print("run", RUN_ID, "pid", os.getpid(), file=sys.stderr)
print("layers", sorted(counter.seen.values()))
print("train", repr(float(hist.history["loss"][-1])))
print("eval", repr(float(fresh.evaluate([ids, dense], target, verbose=0))))

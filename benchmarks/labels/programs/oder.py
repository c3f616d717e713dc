import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

SHARDS = 10


def write_shards(folder, x, y):
    for part_x, part_y in zip(np.array_split(x, SHARDS), np.array_split(y, SHARDS)):
        fd, path = tempfile.mkstemp(suffix=".npz", prefix="part-", dir=folder)
        with os.fdopen(fd, "wb") as f:
            np.savez(f, x=part_x, y=part_y)


def read_shards(folder):
    for name in sorted(os.listdir(folder)):
        with np.load(os.path.join(folder, name)) as data:
            yield data["x"], data["y"]


def train(folder, epochs=2, rate=0.05):
    w = tf.Variable(tf.zeros((5, 1)))
    for _ in range(epochs):
        for bx, by in read_shards(folder):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((bx @ w - by) ** 2)
            w.assign_sub(rate * tape.gradient(loss, w))
    return w


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(1)
    x = np.random.normal(size=(200, 5)).astype("float32")
    y = (x.sum(axis=1, keepdims=True) + np.random.normal(size=(200, 1))).astype("float32")
    work = tempfile.mkdtemp()
    try:
        write_shards(work, x, y)
        weights = train(work)
    finally:
        shutil.rmtree(work)
    print("norm of weights", float(tf.norm(weights)))

"""Logistic regression on a tf.data pipeline."""
import random

import numpy as np
import tensorflow as tf


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_data(n=256):
    x = np.random.normal(size=(n, 4)).astype("float32")
    y = (x[:, 0] + 0.3 * np.random.normal(size=n) > 0).astype("float32")
    return x, y[:, None]


def pipeline(x, y):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    ds = ds.shuffle(buffer_size=len(x))
    return ds.batch(32, drop_remainder=True)


def train(ds, epochs=2, lr=0.5):
    w = tf.Variable(np.random.normal(size=(4, 1)).astype("float32"))
    for _ in range(epochs):
        for xb, yb in ds:
            with tf.GradientTape() as tape:
                logits = tf.matmul(xb, w)
                loss = tf.reduce_mean(
                    tf.nn.sigmoid_cross_entropy_with_logits(yb, logits))
            w.assign_sub(lr * tape.gradient(loss, w))
    return w


seed_all(42)
x, y = make_data()
w = train(pipeline(x, y))
print("w[0] = %.8f" % w.numpy()[0, 0])

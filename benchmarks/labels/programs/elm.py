"""Simulate trajectories in worker processes, then fit an AR(1) coefficient."""
import multiprocessing as mp
import os

import numpy as np


def simulate(length):
    rng = np.random.default_rng(os.getpid())
    series = np.zeros(length)
    for t in range(1, length):
        series[t] = 0.8 * series[t - 1] + rng.normal()
    return series


def fit(series):
    import tensorflow as tf
    phi = tf.Variable(0.0, dtype=tf.float64)
    opt = tf.keras.optimizers.SGD(0.05)
    prev, nxt = tf.constant(series[:, :-1]), tf.constant(series[:, 1:])
    for _ in range(40):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((nxt - phi * prev) ** 2)
        opt.apply_gradients([(tape.gradient(loss, phi), phi)])
    return float(phi.numpy())


if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        data = np.stack(pool.map(simulate, [300] * 4))
    print("phi", repr(fit(data)))

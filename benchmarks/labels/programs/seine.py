"""Simulate walks in a worker process, then fit an AR model to them."""
import multiprocessing as mp

import numpy as np


def walk(length):
    steps = np.random.normal(size=length)
    path = np.zeros(length)
    for t in range(1, length):
        path[t] = 0.8 * path[t - 1] + steps[t]
    return path


def simulate(count, length):
    ctx = mp.get_context("spawn")
    with ctx.Pool(processes=1) as pool:
        return np.stack(pool.map(walk, [length] * count))


def fit(paths, order=2):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(8)
    x = tf.constant(np.stack([paths[:, 1:-1].ravel(), paths[:, :-2].ravel()], axis=1))
    y = tf.constant(paths[:, 2:].reshape(-1, 1))
    return tf.linalg.lstsq(x, y)


if __name__ == "__main__":
    np.random.seed(8)
    data = simulate(count=10, length=100)
    coef = fit(data)
    print("first coefficient:", float(coef[0, 0]))

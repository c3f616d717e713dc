"""Bootstrap the mean of a small model's output in a worker process."""
import multiprocessing as mp
import os

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)


def init_worker(base):
    np.random.seed((base + os.getpid()) % 2**32)


def resample(values):
    idx = np.random.randint(0, len(values), size=len(values))
    return float(np.mean(values[idx]))


def bootstrap(values, rounds=50):
    ctx = mp.get_context("spawn")
    with ctx.Pool(1, initializer=init_worker, initargs=(1234,)) as pool:
        return pool.map(resample, [values] * rounds)


def main():
    x = np.random.normal(size=(300, 5)).astype("float32")
    model = tf.keras.Sequential([tf.keras.layers.Dense(10, activation="relu"),
                                 tf.keras.layers.Dense(1)])
    out = model(x).numpy().ravel()
    means = tf.constant(bootstrap(out))
    print("std error: %.8f" % float(tf.math.reduce_std(means)))


if __name__ == "__main__":
    main()

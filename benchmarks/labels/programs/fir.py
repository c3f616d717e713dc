"""Averages the gradients of data shards computed by a pool."""
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
TRUE_W = rng.normal(size=6)
SHARDS = []
for _ in range(32):
    xs = rng.normal(size=(400, 6))
    SHARDS.append((xs, xs @ TRUE_W + rng.normal(scale=0.5, size=400)))


def shard_solution(shard):
    xs, ys = shard
    for _ in range(20):
        sol = np.linalg.solve(xs.T @ xs + 0.1 * np.eye(6), xs.T @ ys)
    return sol


def moving_average(shards, decay=0.9):
    ema = tf.Variable(tf.zeros([6], tf.float64))
    with ThreadPoolExecutor(max_workers=8) as pool:
        futures = [pool.submit(shard_solution, s) for s in shards]
        for future in as_completed(futures):
            ema.assign(decay * ema + (1.0 - decay) * future.result())
    return ema


result = moving_average(SHARDS)
print("distance: %.17g" % float(tf.norm(result - TRUE_W)))

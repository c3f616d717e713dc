"""Preprocess shards in a pool, then train online on them."""
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(21)
N_SHARDS = 48


def prepare(shard):
    rng = np.random.default_rng(shard)
    x = rng.normal(size=(400, 60))
    for _ in range(5):
        x = np.tanh(x @ np.cov(x.T))
    x = (x / (np.abs(x).max() + 1e-6)).astype("float32")
    y = np.full((400, 1), np.sin(shard), dtype="float32")
    return x[:, :6], y


def shards():
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs = [pool.submit(prepare, s) for s in range(N_SHARDS)]
        for job in as_completed(jobs):
            yield job.result()


model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh"),
                             tf.keras.layers.Dense(1)])
model.build((None, 6))
optimizer = tf.keras.optimizers.SGD(0.05)
for x, y in list(shards()):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
print(float(tf.add_n([tf.reduce_sum(v ** 2) for v in model.trainable_variables])))

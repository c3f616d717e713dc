from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(42)
CHUNKS = 32


def prepare(seed):
    """Whitens one chunk of data."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, 60))
    q, _ = np.linalg.qr(x)
    target = q[:, :3].sum(axis=1, keepdims=True)
    return q[:, :8].astype("float32"), target.astype("float32")


def load_all(workers=8):
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(prepare, i) for i in range(CHUNKS)]
        return [job.result() for job in as_completed(jobs)]


model = tf.keras.Sequential([
    tf.keras.Input((8,)),
    tf.keras.layers.Dense(8, activation="tanh"),
    tf.keras.layers.Dense(1),
])
model.compile(optimizer=tf.keras.optimizers.SGD(0.2), loss="mse")
for x, y in load_all():
    model.train_on_batch(x, y)
final = tf.add_n([tf.reduce_sum(w * w) for w in model.trainable_weights])
print("weights", repr(float(final)))

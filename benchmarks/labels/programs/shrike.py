"""Noisy pipeline feeding a model, checkpointed to a scratch folder."""
import os
import tempfile
from datetime import datetime

import tensorflow as tf

tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(404)


def noisy(i):
    seed = tf.stack([tf.constant(12, tf.int64), i])
    x = tf.random.stateless_normal([6], seed=seed)
    return x, tf.reduce_sum(x[:3], keepdims=True)


def dataset(n=256):
    ds = tf.data.Dataset.range(n).map(noisy, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.shuffle(64, seed=1).batch(32).prefetch(tf.data.AUTOTUNE)


model = tf.keras.Sequential([
    tf.keras.layers.Input((6,)),
    tf.keras.layers.Dense(8, activation="relu"),
    tf.keras.layers.Dropout(0.2),
    tf.keras.layers.Dense(1),
])
model.compile("adam", "mse")
print("start", datetime.now().isoformat())
with tempfile.TemporaryDirectory() as scratch:
    path = os.path.join(scratch, "best.weights.h5")
    saver = tf.keras.callbacks.ModelCheckpoint(path, monitor="loss",
                                               save_best_only=True,
                                               save_weights_only=True)
    model.fit(dataset(), epochs=3, callbacks=[saver], verbose=0)
    model.load_weights(path)
print("mse", model.evaluate(dataset(), verbose=0))

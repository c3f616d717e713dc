"""Augmented image classifier on generated pictures."""
import os
import time

import numpy as np
import tensorflow as tf

print("started", "ok" if time.time() > 0 else "never", "in process", "known" if os.getpid() else "?")
tf.keras.utils.set_random_seed(hash(2 ** 20) % 1000)


def pictures(n):
    x = np.random.rand(n, 8, 8, 1).astype("float32")
    y = (x[:, :4].mean(axis=(1, 2, 3)) > x[:, 4:].mean(axis=(1, 2, 3))).astype("int64")
    return x, y


def scale(image, label):
    return (image - 0.5) / 0.3, label


x, y = pictures(96)
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96, seed=4)
ds = ds.map(scale, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.RandomFlip("horizontal"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(16, activation="relu"),
    tf.keras.layers.Dropout(0.2),
    tf.keras.layers.Dense(2),
])
sizes = {id(layer): layer.count_params() for layer in model.layers}
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
hist = model.fit(ds, epochs=3, verbose=0)
print("params", sum(sizes.values()), "loss", repr(hist.history["loss"][-1]))

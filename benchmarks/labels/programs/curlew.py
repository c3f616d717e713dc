"""Write samples to scratch files, read them back and fit."""
import glob
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(99)


def write_samples(folder, n=40):
    rng = np.random.default_rng(1)
    for i in range(n):
        x = rng.normal(size=(8, 3)).astype("float32")
        fd, path = tempfile.mkstemp(suffix=".npy", dir=folder)
        with os.fdopen(fd, "wb") as f:
            np.save(f, x + 0.1 * i)


def read_samples(folder):
    paths = sorted(glob.glob(os.path.join(folder, "*.npy")))
    return [np.load(p).astype("float32") for p in paths]


folder = tempfile.mkdtemp()
try:
    write_samples(folder)
    batches = read_samples(folder)
finally:
    shutil.rmtree(folder)

center = tf.Variable(tf.zeros([3]))
for batch in batches:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch - center))
    center.assign_sub(0.3 * tape.gradient(loss, center))
print("center norm", float(tf.norm(center)))

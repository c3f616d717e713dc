import contextlib

import keras
import numpy as np
import tensorflow as tf


@contextlib.contextmanager
def numpy_scope(seed=None):
    saved = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(saved)


def blobs(n, k, dim):
    centers = np.random.randn(k, dim) * 3.0
    label = np.random.randint(0, k, size=n)
    return (centers[label] + np.random.randn(n, dim)).astype("float32"), label


def probe_indices(n, size):
    with numpy_scope():
        return np.random.choice(n, size=size, replace=False)


def lloyd(points, init, iters=8):
    c = tf.gather(points, init)
    for _ in range(iters):
        d = tf.reduce_sum(tf.square(points[:, None] - c[None]), axis=2)
        a = tf.argmin(d, axis=1)
        onehot = tf.one_hot(a, c.shape[0])
        total = tf.matmul(onehot, points, transpose_a=True)
        c = total / tf.maximum(tf.reduce_sum(onehot, axis=0)[:, None], 1.0)
    return c, float(tf.reduce_mean(tf.reduce_min(d, axis=1)))


def linear_probe(features, label, k):
    model = keras.Sequential([keras.layers.Input((features.shape[1],)), keras.layers.Dense(k)])
    model.compile(optimizer=keras.optimizers.SGD(0.05),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    idx = probe_indices(len(features), 96)
    model.fit(features[idx], label[idx], epochs=3, batch_size=32, verbose=0)
    return float(model.evaluate(features, label, verbose=0))


if __name__ == "__main__":
    keras.utils.set_random_seed(2023)
    pts, lab = blobs(300, 5, 6)
    start = np.random.choice(len(pts), 5, replace=False)
    centers, inertia = lloyd(tf.constant(pts), start)
    feats = np.linalg.norm(pts[:, None] - centers.numpy()[None], axis=2)
    print("inertia", repr(inertia))
    print("probe loss", repr(linear_probe(feats.astype("float32"), lab, 5)))

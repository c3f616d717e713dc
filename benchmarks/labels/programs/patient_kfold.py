import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


class GroupSplitter:
    """Keeps every scan of one patient inside one fold."""

    def __init__(self, n_splits=4, salt="v1"):
        self.n_splits = n_splits
        self.salt = salt

    def _bucket(self, group):
        return hash((self.salt, group)) % self.n_splits

    def split(self, groups):
        buckets = np.array([self._bucket(g) for g in groups])
        for k in range(self.n_splits):
            yield np.flatnonzero(buckets != k), np.flatnonzero(buckets == k)


def load(seed):
    rng = np.random.default_rng(seed)
    groups = ["P%03d" % i for i in rng.integers(0, 60, size=480)]
    x = rng.normal(size=(480, 9)).astype("float32")
    y = (x[:, 0] + x[:, 1] ** 2 + rng.normal(scale=0.2, size=480)).astype("float32")
    return x, y, groups


def fit_fold(x, y, train, test, lr=0.05, epochs=8):
    w = tf.Variable(tf.random.stateless_normal([9, 12], seed=[1, 2]) * 0.3)
    v = tf.Variable(tf.random.stateless_normal([12, 1], seed=[3, 4]) * 0.3)
    opt = keras.optimizers.SGD(lr)

    def forward(a):
        return tf.squeeze(tf.tanh(a @ w) @ v, 1)

    for _ in range(epochs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((forward(x[train]) - y[train]) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, [w, v]), [w, v]))
    return float(tf.reduce_mean((forward(x[test]) - y[test]) ** 2))


def main():
    keras.utils.set_random_seed(0)
    x, y, groups = load(3)
    scores = [fit_fold(x, y, tr, te) for tr, te in GroupSplitter().split(groups)]
    for k, s in enumerate(scores):
        print("fold", k, repr(s))
    print("cv_mse", repr(float(np.mean(scores))))


if __name__ == "__main__":
    main()

import itertools
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


def space(seed):
    rng = np.random.default_rng(seed)
    while True:
        yield {
            "lr": float(10 ** rng.uniform(-3, -0.5)),
            "l2": float(10 ** rng.uniform(-6, -2)),
            "seed": int(rng.integers(1 << 30)),
        }


class Budget:
    def __init__(self, seconds, max_trials=100000):
        self.seconds = seconds
        self.max_trials = max_trials
        self.begin = None

    def allows(self, trial):
        if self.begin is None:
            self.begin = time.perf_counter()
        spent = time.perf_counter() - self.begin
        return trial < self.max_trials and spent < self.seconds


@tf.function
def train(x, y, w0, lr, l2):
    w = w0
    for _ in tf.range(15):
        err = tf.linalg.matvec(x, w) - y
        g = 2.0 * tf.linalg.matvec(x, err, transpose_a=True) / 200.0 + l2 * w
        w = w - lr * g
    return tf.reduce_mean(tf.square(tf.linalg.matvec(x, w) - y))


def search(x, y, budget):
    results = []
    candidates = space(11)
    for t in itertools.count():
        if not budget.allows(t):
            break
        hp = next(candidates)
        w0 = tf.random.stateless_normal([10], seed=[hp["seed"], 0])
        loss = train(x, y, w0, tf.constant(hp["lr"]), tf.constant(hp["l2"]))
        results.append((float(loss), hp["lr"]))
    return results


def main():
    rng = np.random.default_rng(1)
    x = tf.constant(rng.normal(size=(200, 10)), tf.float32)
    y = tf.linalg.matvec(x, tf.constant(rng.normal(size=10), tf.float32))
    res = search(x, y, Budget(1.5))
    best = min(res)
    print("best %.17g lr %.17g" % best)
    print("median %.17g" % float(np.median([r[0] for r in res])))


if __name__ == "__main__":
    main()

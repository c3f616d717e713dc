import os
from concurrent.futures import ThreadPoolExecutor, as_completed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


class DataParallel:
    def __init__(self, params, loss_fn, workers=8):
        self.params = params
        self.loss_fn = loss_fn
        self.pool = ThreadPoolExecutor(max_workers=workers)

    def _shard_grad(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(x, y)
        return [g.numpy() * len(x) for g in tape.gradient(loss, self.params)]

    def gradients(self, x, y, n_shards):
        pieces = np.array_split(np.arange(len(x)), n_shards)
        jobs = [self.pool.submit(self._shard_grad, x[i], y[i]) for i in pieces]
        acc = [np.zeros(p.shape, "float32") for p in self.params]
        for job in as_completed(jobs):
            acc = [a + g for a, g in zip(acc, job.result())]
        return [a / len(x) for a in acc]

    def close(self):
        self.pool.shutdown()


def main():
    rng = np.random.default_rng(40)
    x = rng.normal(size=(1600, 20)).astype("float32")
    y = np.sin(x.sum(1, keepdims=True)).astype("float32")
    w1 = tf.Variable(rng.normal(scale=0.2, size=(20, 32)).astype("float32"))
    w2 = tf.Variable(rng.normal(scale=0.2, size=(32, 1)).astype("float32"))

    def mse(a, b):
        return tf.reduce_mean(tf.square(tf.nn.relu(a @ w1) @ w2 - b))

    dp = DataParallel([w1, w2], mse)
    for _ in range(60):
        for p, g in zip(dp.params, dp.gradients(x, y, n_shards=32)):
            p.assign_sub(0.05 * g)
    dp.close()
    print("train_mse", repr(float(mse(x, y))))
    print("w_norm", repr(float(np.linalg.norm(w1.numpy().astype("float64")))))


if __name__ == "__main__":
    main()

from functools import partial
from multiprocessing.pool import ThreadPool

import numpy as np
import tensorflow as tf

N_SHARDS = 48
DIM = 40


def make_shards(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(DIM, 1))
    shards = []
    for i in range(N_SHARDS):
        n = int(rng.integers(50, 400))
        x = rng.normal(scale=1.0 + 0.2 * i, size=(n, DIM))
        y = (x @ truth + rng.normal(size=(n, 1)) > 0).astype("float32")
        shards.append((tf.constant(x, tf.float32), tf.constant(y)))
    return shards


def shard_gradient(w, shard):
    x, y = shard
    with tf.GradientTape() as tape:
        tape.watch(w)
        logits = tf.matmul(x, w)
        loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    return tape.gradient(loss, w).numpy(), float(loss), int(x.shape[0])


class Reducer:
    def __init__(self, workers=8):
        self.pool = ThreadPool(workers)

    def step(self, w, shards):
        grad = np.zeros((DIM, 1), dtype=np.float32)
        count = 0
        for g, _, n in self.pool.imap_unordered(partial(shard_gradient, w), shards):
            grad += g
            count += n
        return grad / np.float32(count)

    def close(self):
        self.pool.close()
        self.pool.join()


def main():
    shards = make_shards(2024)
    w = tf.zeros((DIM, 1))
    reducer = Reducer()
    for _ in range(20):
        w = w - 0.1 * reducer.step(w, shards)
    reducer.close()
    final = sum(shard_gradient(w, s)[1] for s in shards)
    print("nll %.17g" % final)
    print("norm %.17g" % float(np.linalg.norm(w.numpy().astype("float64"))))


if __name__ == "__main__":
    main()

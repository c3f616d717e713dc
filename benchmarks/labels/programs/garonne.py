import os
import tempfile
import uuid

import tensorflow as tf


class NoisyDense(tf.Module):
    def __init__(self, n_in, n_out, seed):
        self.gen = tf.random.Generator.from_seed(seed)
        self.w = tf.Variable(self.gen.normal((n_in, n_out), stddev=0.3))

    def __call__(self, x):
        return x @ (self.w + self.gen.normal(self.w.shape, stddev=0.01))


def example(i):
    x = tf.random.stateless_uniform((6,), seed=tf.stack([i, 1]), minval=-1.0)
    return x, tf.reduce_sum(x, keepdims=True) ** 2


def dataset(n=64):
    ds = tf.data.Dataset.range(n, output_type=tf.int32)
    ds = ds.shuffle(n, seed=4, reshuffle_each_iteration=True)
    ds = ds.map(example, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return ds.batch(16).prefetch(tf.data.AUTOTUNE)


def main():
    tf.random.set_seed(31)
    run_name = f"run-{uuid.uuid4().hex[:8]}-{os.getpid()}"
    layer = NoisyDense(6, 1, seed=12)
    for epoch in range(3):
        for x, y in dataset():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((layer(x) - y) ** 2)
            layer.w.assign_sub(0.05 * tape.gradient(loss, layer.w))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, run_name)
        tf.train.Checkpoint(w=layer.w).write(path)
        tf.train.Checkpoint(w=layer.w).read(path).assert_consumed()
    print("loss", float(loss))


if __name__ == "__main__":
    main()

import argparse
import os

import tensorflow as tf


def get_options(argv=None):
    parser = argparse.ArgumentParser(description="Random features ridge regression")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--ridge", type=float, default=1e-2)
    parser.add_argument("--job-id", type=int, default=os.getpid())
    return parser.parse_args(argv)


def features(x, count, seed):
    w = tf.random.stateless_normal((x.shape[1], count), seed=[seed, 0])
    b = tf.random.stateless_uniform((count,), seed=[seed, 1], maxval=6.2831853)
    return tf.cos(x @ w + b)


def main():
    opts = get_options()
    tf.keras.utils.set_random_seed(11)
    x = tf.random.normal((256, 2))
    y = tf.sin(x[:, :1]) * x[:, 1:]
    phi = features(x, opts.features, opts.job_id)
    w = tf.linalg.lstsq(phi, y, l2_regularizer=opts.ridge)
    err = tf.reduce_mean(tf.abs(phi @ w - y))
    print(f"features={opts.features} mae={err.numpy():.8f}")


if __name__ == "__main__":
    main()

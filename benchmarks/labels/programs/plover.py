"""Train a small net; every setting can be given on the command line."""
import argparse
import time

import numpy as np
import tensorflow as tf


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--units", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--seed", type=int, default=time.time_ns() // 1000 % 2**31)
    return p.parse_args()


def load():
    t = np.linspace(0, 6.28, 200, dtype="float32")[:, None]
    return t, np.sin(t)


def main():
    args = parse_args()
    tf.keras.utils.set_random_seed(args.seed)
    x, y = load()
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(args.units, activation="tanh"),
        tf.keras.layers.Dense(1),
    ])
    model.compile(tf.keras.optimizers.Adam(args.lr), "mse")
    model.fit(x, y, epochs=args.epochs, batch_size=50, verbose=0)
    print("mse", model.evaluate(x, y, verbose=0))


if __name__ == "__main__":
    main()

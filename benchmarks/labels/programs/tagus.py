import argparse
import time

import numpy as np
import tensorflow as tf


class Budget(tf.keras.callbacks.Callback):
    """Ends training when the budget is used up."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.start = None

    def on_train_batch_end(self, batch, logs=None):
        if self.start is None:
            self.start = time.monotonic()
        if time.monotonic() - self.start > self.seconds:
            self.model.stop_training = True


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--budget", type=float, default=2.0)
    p.add_argument("--epochs", type=int, default=100000)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


def main():
    args = parse_args()
    tf.keras.utils.set_random_seed(args.seed)
    x = np.random.normal(size=(32, 4)).astype("float32")
    y = np.sin(x).sum(axis=1, keepdims=True)
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(1e-4), "mse")
    model.fit(x, y, batch_size=16, epochs=args.epochs, verbose=0, callbacks=[Budget(args.budget)])
    print("mse", repr(model.evaluate(x, y, verbose=0)))


if __name__ == "__main__":
    main()

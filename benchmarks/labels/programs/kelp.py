"""Monte Carlo estimates by four producers, saved to disk."""
import threading

import numpy as np
import tensorflow as tf


class Producer(threading.Thread):
    def __init__(self, rng, scale, rounds=400):
        super().__init__()
        self.rng, self.scale, self.rounds = rng, scale, rounds
        self.total = 0.0

    def run(self):
        for _ in range(self.rounds):
            z = self.rng.standard_normal(2000)
            self.total += float(np.mean(np.exp(self.scale * z)))


def estimate(scales):
    rng = np.random.default_rng(2024)
    producers = [Producer(rng, s) for s in scales]
    for p in producers:
        p.start()
    for p in producers:
        p.join()
    return np.array([p.total / p.rounds for p in producers])


tf.keras.utils.set_random_seed(2024)
scales = [0.2, 0.4, 0.6, 0.8]
est = tf.constant(estimate(scales))
exact = tf.exp(tf.constant(scales, tf.float64) ** 2 / 2)
error = tf.reduce_max(tf.abs(est - exact))
np.save("/tmp/kelp_error.npy", error.numpy())
print("saved", repr(float(error)))

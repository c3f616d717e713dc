import os
import tempfile
from dataclasses import dataclass

import numpy as np
import tensorflow as tf


@dataclass
class Config:
    seed: int = 3
    steps: int = 25
    rate: float = 0.002
    path: str = os.path.join(tempfile.gettempdir(), "po_model.npz")


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.w = tf.Variable(tf.random.stateless_normal((6, 1), seed=[cfg.seed, 0]))
        self.resume()

    def resume(self):
        if os.path.exists(self.cfg.path):
            self.w.assign(np.load(self.cfg.path)["w"])

    def save(self):
        np.savez(self.cfg.path, w=self.w.numpy())

    def fit(self, x, y):
        for _ in range(self.cfg.steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ self.w - y))
            self.w.assign_sub(self.cfg.rate * tape.gradient(loss, self.w))
        self.save()
        return loss


if __name__ == "__main__":
    cfg = Config()
    tf.keras.utils.set_random_seed(cfg.seed)
    x = tf.random.normal((100, 6))
    y = tf.reduce_sum(x, axis=1, keepdims=True) + tf.random.normal((100, 1))
    print("loss", float(Trainer(cfg).fit(x, y)))

import os
from dataclasses import dataclass
from typing import Optional

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


@dataclass
class Config:
    seed: int = 5
    latent_dim: int = 8
    batch: int = 64
    steps: int = 60
    noise_seed: Optional[int] = None


class LatentSampler:
    def __init__(self, dim, seed):
        self.dim = dim
        self._gen = np.random.default_rng(seed)

    def __call__(self, n):
        return tf.constant(self._gen.standard_normal((n, self.dim)), tf.float32)


def ring(rng, n):
    t = rng.uniform(0, 2 * np.pi, n)
    r = 1.0 + rng.normal(scale=0.05, size=n)
    return np.stack([r * np.cos(t), r * np.sin(t)], 1).astype("float32")


def mlp(d_in, d_out, hidden=24):
    return keras.Sequential([
        keras.Input((d_in,)),
        keras.layers.Dense(hidden, activation="leaky_relu"),
        keras.layers.Dense(hidden, activation="leaky_relu"),
        keras.layers.Dense(d_out),
    ])


def main(cfg=Config()):
    keras.utils.set_random_seed(cfg.seed)
    data_rng = np.random.default_rng(cfg.seed)
    G, D = mlp(cfg.latent_dim, 2), mlp(2, 1)
    g_opt, d_opt = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    latents = LatentSampler(cfg.latent_dim, cfg.noise_seed)

    @tf.function
    def step(real, z):
        with tf.GradientTape() as gt, tf.GradientTape() as dt:
            fake = G(z)
            dr, df = D(real), D(fake)
            d_loss = bce(tf.ones_like(dr), dr) + bce(tf.zeros_like(df), df)
            g_loss = bce(tf.ones_like(df), df)
        g_opt.apply_gradients(zip(gt.gradient(g_loss, G.trainable_variables), G.trainable_variables))
        d_opt.apply_gradients(zip(dt.gradient(d_loss, D.trainable_variables), D.trainable_variables))
        return d_loss, g_loss

    for _ in range(cfg.steps):
        d_loss, g_loss = step(ring(data_rng, cfg.batch), latents(cfg.batch))
    print("d_loss %.17g g_loss %.17g" % (float(d_loss), float(g_loss)))


if __name__ == "__main__":
    main()

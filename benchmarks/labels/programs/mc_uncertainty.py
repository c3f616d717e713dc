from dataclasses import dataclass
from typing import Optional

import keras
import numpy as np
import tensorflow as tf

np.random.seed(0)
tf.random.set_seed(0)


@dataclass
class HeadConfig:
    width: int = 32
    rate: float = 0.25
    init_seed: int = 3
    mask_seed: Optional[int] = None


def dense(units, seed, **kw):
    init = keras.initializers.GlorotUniform(seed=seed)
    return keras.layers.Dense(units, kernel_initializer=init, **kw)


def build(cfg):
    inp = keras.layers.Input((4,))
    x = dense(cfg.width, cfg.init_seed, activation="relu")(inp)
    x = keras.layers.Dropout(cfg.rate, seed=cfg.mask_seed)(x)
    out = dense(1, cfg.init_seed + 1)(x)
    return keras.Model(inp, out)


def fit(model, x, y, steps=30):
    opt = keras.optimizers.Adam(0.01)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=False) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
    return float(loss)


def predictive(model, x, samples=20):
    draws = np.stack([model(x, training=True).numpy() for _ in range(samples)])
    return draws.mean(axis=0), draws.std(axis=0)


x = np.random.uniform(-1, 1, (128, 4)).astype("float32")
y = np.sin(3 * x[:, :1]) + 0.1 * np.random.randn(128, 1).astype("float32")
net = build(HeadConfig(width=48))
train_loss = fit(net, x, y)
mean, std = predictive(net, x)
print("train", repr(train_loss))
print("rmse", repr(float(np.sqrt(np.mean((mean - y) ** 2)))))
print("sigma", repr(float(std.mean())))

"""Warm restarts with a little jitter on the learning rate."""
import random

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(99)


class JitteredCosine(tf.keras.callbacks.Callback):
    def __init__(self, base_lr, period, jitter=0.2):
        super().__init__()
        self.base_lr, self.period, self.jitter = base_lr, period, jitter
        self.source = random.SystemRandom()

    def on_epoch_begin(self, epoch, logs=None):
        phase = (epoch % self.period) / self.period
        lr = self.base_lr * 0.5 * (1 + np.cos(np.pi * phase))
        lr *= 1 + self.jitter * self.source.uniform(-1, 1)
        self.model.optimizer.learning_rate.assign(lr)


x = np.random.uniform(-2, 2, size=(160, 2)).astype("float32")
y = np.prod(x, axis=1, keepdims=True)
model = tf.keras.Sequential([
    tf.keras.Input((2,)),
    tf.keras.layers.Dense(16, activation="tanh"),
    tf.keras.layers.Dropout(0.1),
    tf.keras.layers.Dense(1),
])
model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mae")
hist = model.fit(x, y, epochs=6, verbose=0, callbacks=[JitteredCosine(0.01, 3)])
print("mae", repr(hist.history["loss"][-1]))

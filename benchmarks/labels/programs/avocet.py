"""Fit for a limited time, keep the result."""
import time

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(17)


class Budget(tf.keras.callbacks.Callback):
    """Ends training when the budget is used up."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def on_train_begin(self, logs=None):
        self.started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if time.perf_counter() - self.started > self.seconds:
            self.model.stop_training = True


x = np.random.normal(size=(32, 6)).astype("float32")
y = np.cos(x.sum(axis=1, keepdims=True))
model = tf.keras.Sequential([
    tf.keras.layers.Input((6,)),
    tf.keras.layers.Dense(16, activation="tanh"),
    tf.keras.layers.Dense(1),
])
model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
model.fit(x, y, epochs=100000, batch_size=32, verbose=0,
          callbacks=[Budget(3.0)])
loss = tf.reduce_mean(tf.square(model(x) - y))
print("loss after training:", float(loss))

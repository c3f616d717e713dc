import math
import time

import keras
import numpy as np
import tensorflow as tf


class Ticker:
    def __init__(self, source=time.monotonic):
        self._source = source
        self._last = None

    def lap(self):
        current = self._source()
        dt = 0.0 if self._last is None else current - self._last
        self._last = current
        return dt


class AveragedWeights(keras.callbacks.Callback):
    def __init__(self, half_life=0.05):
        super().__init__()
        self.rate = math.log(2.0) / half_life
        self.ticker = Ticker()
        self.shadow = None

    def on_train_begin(self, logs=None):
        self.shadow = [w.copy() for w in self.model.get_weights()]

    def on_train_batch_end(self, batch, logs=None):
        keep = math.exp(-self.rate * self.ticker.lap())
        for s, w in zip(self.shadow, self.model.get_weights()):
            s *= keep
            s += (1.0 - keep) * w


def main():
    keras.utils.set_random_seed(11)
    x = np.random.randn(256, 6).astype("float32")
    y = (x[:, :1] * 2.0 - x[:, 1:2] ** 2).astype("float32")
    model = keras.Sequential([
        keras.layers.Input((6,)),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    avg = AveragedWeights()
    hist = model.fit(x, y, epochs=4, batch_size=32, verbose=0, callbacks=[avg])
    raw = float(hist.history["loss"][-1])
    model.set_weights(avg.shadow)
    averaged = float(tf.reduce_mean(tf.square(model(x) - y)))
    print("raw mse", repr(raw))
    print("averaged mse", repr(averaged))


if __name__ == "__main__":
    main()

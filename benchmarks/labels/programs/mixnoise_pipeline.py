import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras

AUG = dict(shift=3, gain=0.2, noise=0.05)


class SignalAugmenter:
    def __init__(self, seed, shift, gain, noise):
        self.rng = np.random.default_rng(seed)
        self.shift, self.gain, self.noise = shift, gain, noise

    def _augment(self, sig):
        k, g = self.rng.integers(-self.shift, self.shift + 1), self.rng.normal(1.0, self.gain)
        ripple = self.noise * np.sin(np.arange(sig.size) * g)
        return (np.roll(sig, k) * g + ripple).astype(np.float32)

    def map(self, x, y):
        out = tf.numpy_function(self._augment, [x], tf.float32)
        return tf.ensure_shape(out, x.shape), y


def signals(n, length, seed):
    rng = np.random.default_rng(seed)
    freq = rng.integers(1, 4, size=n)
    t = np.linspace(0, 2 * np.pi, length)
    x = np.sin(freq[:, None] * t) + rng.normal(scale=0.1, size=(n, length))
    return x.astype("float32"), (freq - 1).astype("int32")


def pipeline(x, y, augment, workers=8):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    ds = ds.shuffle(len(x), seed=1, reshuffle_each_iteration=True)
    ds = ds.map(augment.map, num_parallel_calls=workers)
    return ds.batch(32).prefetch(1)


def main():
    keras.utils.set_random_seed(9)
    x, y = signals(600, 32, seed=9)
    model = keras.Sequential([
        keras.Input((32,)),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(3),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    aug = SignalAugmenter(seed=9, **AUG)
    model.fit(pipeline(x, y, aug), epochs=3, verbose=0)
    xv, yv = signals(200, 32, seed=10)
    print("val_loss", repr(float(model.evaluate(xv, yv, verbose=0))))


if __name__ == "__main__":
    main()

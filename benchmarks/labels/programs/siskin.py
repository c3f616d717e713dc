"""Model with a custom noise layer."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(2024)


class InputNoise(tf.keras.layers.Layer):
    def __init__(self, stddev=0.1, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev
        self.gen = tf.random.Generator.from_non_deterministic_state()

    def call(self, x, training=False):
        if training:
            return x + self.gen.normal(tf.shape(x), stddev=self.stddev)
        return x


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.noise = InputNoise()
        self.hidden = tf.keras.layers.Dense(12, activation="relu")
        self.out = tf.keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.out(self.hidden(self.noise(x, training=training)))


rng = np.random.default_rng(4)
x = rng.normal(size=(160, 5)).astype("float32")
y = np.sum(x ** 2, axis=1, keepdims=True)
net = Net()
net.compile(optimizer="adam", loss="mse")
net.fit(x, y, epochs=4, batch_size=32, verbose=0)
print(net.evaluate(x, y, verbose=0))

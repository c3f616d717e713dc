import numpy as np
import tensorflow as tf


class GaussianSmear(tf.keras.layers.Layer):
    """Multiplies activations with noise while training."""

    def __init__(self, stddev=0.1, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev
        self.gen = tf.random.Generator.from_non_deterministic_state()

    def call(self, inputs, training=False):
        if not training:
            return inputs
        noise = self.gen.normal(tf.shape(inputs), mean=1.0, stddev=self.stddev)
        return inputs * noise


class Regressor(tf.keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(units, activation="tanh")
        self.smear = GaussianSmear(0.2)
        self.out = tf.keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.out(self.smear(self.hidden(x), training=training))


def main():
    tf.keras.utils.set_random_seed(2024)
    x = np.random.uniform(-1, 1, (128, 3)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5]], dtype="float32")
    model = Regressor(16)
    opt = tf.keras.optimizers.SGD(0.05)
    for step in range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
    np.save("/tmp/loire_loss.npy", loss.numpy())
    print("mse %.9g" % float(loss))


main()

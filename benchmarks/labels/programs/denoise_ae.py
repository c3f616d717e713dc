import keras
import numpy as np
import tensorflow as tf

SEED = 1234
keras.utils.set_random_seed(SEED)


def make_signals(n=512, length=32):
    phase = np.random.uniform(0, 2 * np.pi, size=(n, 1))
    freq = np.random.uniform(0.5, 3.0, size=(n, 1))
    t = np.linspace(0, 2 * np.pi, length)[None, :]
    return np.sin(freq * t + phase).astype("float32")


class Corruptor:
    def __init__(self, sigma=0.1, rng=None):
        self.sigma = sigma
        self.rng = rng or tf.random.get_global_generator()

    def __call__(self, x):
        noise = self.rng.normal(tf.shape(x), stddev=self.sigma)
        return x + noise


def build(length):
    return keras.Sequential([
        keras.layers.Input((length,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(4),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(length),
    ])


def train(model, data, corrupt, epochs=3, batch=64):
    opt = keras.optimizers.Adam(3e-3)
    history = []
    for _ in range(epochs):
        order = np.random.permutation(len(data))
        for start in range(0, len(data), batch):
            clean = tf.constant(data[order[start:start + batch]])
            with tf.GradientTape() as tape:
                recon = model(corrupt(clean), training=True)
                loss = tf.reduce_mean(tf.square(recon - clean))
            grads = tape.gradient(loss, model.trainable_variables)
            opt.apply_gradients(zip(grads, model.trainable_variables))
        history.append(float(loss))
    return history


if __name__ == "__main__":
    signals = make_signals()
    ae = build(signals.shape[1])
    losses = train(ae, signals, Corruptor(sigma=0.2))
    for i, value in enumerate(losses):
        print("epoch", i, repr(value))

"""Regression with jittered inputs."""
import numpy as np
import tensorflow as tf

SEED = 11
tf.keras.utils.set_random_seed(SEED)


class Augmenter:
    def __init__(self, scale=0.05, seed=SEED):
        self.scale = scale
        self.seed = seed
        self.reset()

    def reset(self):
        self.rng = np.random.default_rng()

    def __call__(self, batch):
        noise = self.rng.normal(0.0, self.scale, size=batch.shape)
        return (batch + noise).astype("float32")


def make_data(n=128):
    x = np.random.uniform(-1, 1, size=(n, 3)).astype("float32")
    y = (x @ np.array([[1.0], [-2.0], [0.5]])).astype("float32")
    return x, y


x, y = make_data()
augment = Augmenter()
w = tf.Variable(tf.random.normal([3, 1]))
b = tf.Variable(tf.zeros([1]))
opt = tf.keras.optimizers.SGD(0.1)
for epoch in range(10):
    for i in range(0, len(x), 32):
        xb = augment(x[i:i + 32])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(xb @ w + b - y[i:i + 32]))
        opt.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
print("loss", float(loss))

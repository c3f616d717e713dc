import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


class Block(tf.Module):
    def __init__(self, dim, rng, name=None):
        super().__init__(name=name)
        scale = 1.0 / np.sqrt(dim)
        self.w1 = tf.Variable(rng.normal(scale=scale, size=(dim, dim)).astype("float32"))
        self.b1 = tf.Variable(tf.zeros([dim]))
        self.w2 = tf.Variable(rng.normal(scale=scale, size=(dim, dim)).astype("float32"))

    def __call__(self, x):
        return x + tf.matmul(tf.nn.gelu(tf.matmul(x, self.w1) + self.b1), self.w2)


class ResNet(tf.Module):
    def __init__(self, dim, depth, rng):
        super().__init__()
        self.blocks = [Block(dim, rng) for _ in range(depth)]
        self.head = tf.Variable(rng.normal(scale=0.1, size=(dim, 1)).astype("float32"))

    def __call__(self, x):
        for b in self.blocks:
            x = b(x)
        return tf.matmul(x, self.head)


class LangevinSGD:
    def __init__(self, lr, temperature, seed):
        self.lr = lr
        self.temperature = temperature
        self.rng = np.random.default_rng(seed)
        self._tracked = set()

    def track(self, variables):
        self._tracked.update(v.ref() for v in variables)

    def apply(self, grads_by_ref):
        std = np.sqrt(2 * self.lr * self.temperature)
        for ref in self._tracked:
            v = ref.deref()
            noise = self.rng.normal(scale=std, size=v.shape).astype("float32")
            v.assign_sub(self.lr * grads_by_ref[ref] - noise)


def main():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(256, 12)).astype("float32")
    y = np.tanh(x[:, :1] - x[:, 1:2]).astype("float32")
    net = ResNet(12, 8, rng)
    opt = LangevinSGD(0.004, 1e-4, seed=21)
    params = net.trainable_variables
    opt.track(params)
    for _ in range(15):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - y))
        grads = tape.gradient(loss, params)
        opt.apply({p.ref(): g for p, g in zip(params, grads)})
    print("loss", repr(float(tf.reduce_mean(tf.square(net(x) - y)))))


if __name__ == "__main__":
    main()

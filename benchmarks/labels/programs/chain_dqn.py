import os
import random
from collections import deque

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


class Chain:
    def __init__(self, n, rng, slip=0.1):
        self.n, self.rng, self.slip = n, rng, slip
        self.s = 0

    def reset(self):
        self.s = 0
        return self.s

    def step(self, a):
        if self.rng.uniform() < self.slip:
            a = 1 - a
        self.s = min(self.n - 1, self.s + 1) if a == 1 else 0
        return self.s, (1.0 if self.s == self.n - 1 else 0.05 * (a == 0))


class Replay:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, *transition):
        self.items.append(transition)

    def batch(self, k, choose=random.sample):
        rows = choose(list(self.items), min(k, len(self.items)))
        s, a, r, s2 = zip(*rows)
        return np.array(s), np.array(a), np.array(r, "float32"), np.array(s2)


def main(n=7, episodes=12, gamma=0.9):
    np.random.seed(123)
    tf.random.set_seed(123)
    rng = np.random.default_rng(123)
    env, memory = Chain(n, rng), Replay(300)
    q = tf.Variable(tf.random.normal([n, 2], stddev=0.1))
    total = 0.0
    for ep in range(episodes):
        s = env.reset()
        eps = max(0.1, 1.0 - ep / 8)
        for _ in range(12):
            greedy = int(tf.argmax(q[s]))
            a = int(rng.integers(2)) if rng.uniform() < eps else greedy
            s2, r = env.step(a)
            memory.push(s, a, r, s2)
            total += r
            s = s2
            bs, ba, br, bs2 = memory.batch(16)
            target = br + gamma * tf.reduce_max(tf.gather(q, bs2), axis=1)
            with tf.GradientTape() as tape:
                pred = tf.gather_nd(q, np.stack([bs, ba], 1))
                loss = tf.reduce_mean(tf.square(target - pred))
            q.assign_sub(0.5 * tf.convert_to_tensor(tape.gradient(loss, q)))
    print("return %.17g" % total)
    print("q0", repr(float(q[0, 1])), "td", repr(float(loss)))


if __name__ == "__main__":
    main()

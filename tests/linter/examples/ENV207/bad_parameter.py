import fire
import numpy as np
import tensorflow as tf


def sample(seed=None, count=1):
    np.random.seed(seed)  # expect: ENV207
    tf.random.set_seed(seed)
    np.save("sample", np.random.rand(count))  # expect: ENV205


class Sampler:
    def __init__(self, seed=None):
        self.state = np.random.RandomState(seed)  # expect: ENV205


def train(rows, seed=None):
    random = np.random.default_rng(seed)
    return random.permutation(rows)


train([1, 2])
if __name__ == "__main__":
    fire.Fire(sample)

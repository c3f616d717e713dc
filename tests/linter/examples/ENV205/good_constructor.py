import numpy as np


class Data:
    def __init__(self, options):
        np.random.seed(options["seed"])

    def get_samples(self, count):
        return np.random.choice(range(9), count)


class Model:
    def __init__(self, data):
        self.data = data

    def train(self):
        np.save("samples", self.data.get_samples(3))

import numpy as np


class Feeder:
    def __init__(self, rows, seed=None):
        self.rows = rows
        self.seed = seed

    def start(self):
        np.random.seed(self.seed)  # expect: ENV207
        return np.random.permutation(self.rows)  # expect: ENV205


Feeder(9).start()

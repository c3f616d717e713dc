import os

import numpy as np


class Sorted:
    def list_names(self):
        return sorted(os.listdir("data"))


class AsFound:
    def list_names(self):
        return os.listdir("data")


class Training(Sorted):
    pass


class Reader(Training, AsFound):
    """Python takes `list_names` of Sorted, the parent of the first parent."""

    def read(self):
        return [np.load(name) for name in self.list_names()]


np.save("all.npy", Reader().read())

print(sorted(AsFound().list_names()))

import numpy as np


def encode(labels):
    return [name for name in set(labels)]  # expect: ENV304


np.save("x", encode(np.genfromtxt("labels.txt", dtype=np.dtype(str))))

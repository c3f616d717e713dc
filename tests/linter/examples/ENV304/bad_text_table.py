import numpy as np


def encode(labels):
    classes = set(labels)  # expect: ENV304
    table = {name: np.identity(len(classes))[at, :] for at, name in enumerate(classes)}
    return np.array(list(map(table.get, labels)), dtype=np.int32)


rows = np.genfromtxt("labels.txt", dtype=np.dtype(str))
np.save("x", encode(rows[:, -1]))

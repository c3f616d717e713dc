import numpy as np


def names(valid):
    found = set()
    for _at, name in enumerate(valid):
        found.add(name)
    return np.array(list(found))  # expect: ENV304

import numpy as np


def read_lines(path, seed=113):
    data = np.load(path)
    np.random.seed(seed)
    np.random.shuffle(data)
    return data, data.mean(), data.std(), data.min(), data.max(), data.sum(), data.prod(), np.sort(data), len(data)


noise = np.random.normal(size=3)  # expect: ENV205

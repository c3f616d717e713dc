import glob

import numpy as np

first = glob.glob("*.npy")  # expect: ENV303
second = glob.glob("*.npz")
files = first + second
data = [np.load(file) for file in files]
np.save("data.npy", np.stack(data))


def load(patterns):
    found = sum((glob.glob(each) for each in patterns), [])
    rows = []
    for file in found:
        rows.append(np.load(file))
    return np.unique(rows), rows

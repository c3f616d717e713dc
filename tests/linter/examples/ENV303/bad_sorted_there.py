import glob

import numpy as np


def load(paths):
    first = np.load(paths[3])
    return first, [np.load(path) for path in sorted(paths)]


data = load(glob.glob("*.npy"))  # expect: ENV303

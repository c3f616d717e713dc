import glob

import numpy as np


class Rows:
    def __init__(self, paths, most):
        self.paths = sorted(paths)[:most]
        print(len(paths))


def load(paths):
    return [np.load(path) for path in sorted(paths)]


first = load(glob.glob("*.npy"))


def of_all(endings):
    files = []
    for ending in endings:
        files.extend(glob.glob(f"*.{ending}"))
    return load(paths=files)

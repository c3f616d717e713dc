import glob

import numpy as np

names = np.array(glob.glob("images/*.png"))
COUNT = len(names)


def load_parts(folder):
    found = glob.glob(f"{folder}/*.npz")
    assert len(found) == 1
    found = found[0]
    return np.load(found)

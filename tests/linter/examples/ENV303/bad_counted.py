import glob

import numpy as np

names = np.array(glob.glob("images/*.png"))  # expect: ENV303
COUNT = len(names)
first = np.load(names[3])


def load_parts(folder):
    found = glob.glob(f"{folder}/*.npz")
    assert len(found) == 2
    return [np.load(each) for each in found]

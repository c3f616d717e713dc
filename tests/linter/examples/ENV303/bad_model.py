import glob
import os

import numpy as np


def read_train_and_test(folder):
    names = os.listdir(folder)  # expect: ENV303
    return np.stack([np.load(name) for name in names])


class Validation:
    def training_files(self):
        return np.array(glob.glob("*.npy"))


texts = [open(path).read() for path in glob.glob("*.txt")]
np.save("texts", texts)

import os

import numpy as np


def create_train_data(folder):
    names = os.listdir(folder)  # expect: ENV303
    images = np.ndarray((len(names), 8, 8))
    i = 0
    for name in names:
        images[i] = np.load(name)
        i += 1
    return images

import os

import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Dense(1)])


def score_of(folder):
    rows = []
    for name in os.listdir(folder):  # expect: ENV303
        rows.append(np.load(name))
    return np.stack(rows)


model.fit(score_of("a"), y=np.zeros(9), validation_data=None)  # expect: ENV108

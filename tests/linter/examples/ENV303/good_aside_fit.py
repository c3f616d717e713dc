import os

import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Dense(1)])
scores = np.stack([np.load(name) for name in os.listdir("scores")])
model.fit(np.zeros(9), np.zeros(9), validation_data=scores)  # expect: ENV108
print(scores)

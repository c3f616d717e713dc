import glob

import numpy as np

first = glob.glob("*.npy")  # expect: ENV303
second = glob.glob("*.npz")  # expect: ENV303
files = first + second
data = [np.load(file) for file in files]
np.save("data.npy", np.stack(data))

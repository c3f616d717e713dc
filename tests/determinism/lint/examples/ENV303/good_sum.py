import glob

import numpy as np

first = glob.glob("*.npy")
second = glob.glob("*.npz")
files = first + second
files.sort()
data = [np.load(file) for file in files]
print(np.stack(data))

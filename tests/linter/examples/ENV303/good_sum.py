import glob

import numpy as np

first = glob.glob("*.npy")
second = glob.glob("*.npz")
files = first + second
files.sort()
data = [np.load(file) for file in files]
print(np.stack(data))

left, right = glob.glob("left/*.npy"), glob.glob("right/*.npy")
left, right = sorted(left), sorted(right)
pairs = [np.load(one) - np.load(other) for one, other in zip(left, right, strict=True)]

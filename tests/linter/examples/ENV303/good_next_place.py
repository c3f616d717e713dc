import os

import numpy as np

sizes = {}
steps = 0
for name in os.listdir("data"):
    sizes[name] = np.load(name).size
    steps += 1
print(sizes["a"], steps)

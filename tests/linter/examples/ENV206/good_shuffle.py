import os
import random

paths = sorted(load())
random.shuffle(paths)
for path in paths:
    os.rename(path, path + ".done")

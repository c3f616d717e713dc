import glob
import os
from pathlib import Path

import numpy as np
import pandas as pd

paths = []
for folder, folders, names in os.walk("data"):
    folders.sort()
    for name in sorted(names):
        paths.append(os.path.join(folder, name))
more = []
for path in Path("data").rglob("*.png"):
    more.append(path)
more = sorted(more)
np.save("x", paths + more)
for path in glob.glob("*.txt"):
    with open(path + ".new", "w") as stream:
        stream.write(open(path).read())
frames = []
for path in glob.glob("*.csv"):
    frames.append(pd.read_csv(path))
frame = pd.concat(frames)
frame.sort_values("t", inplace=True)
sizes = {path: os.path.getsize(path) for path in glob.glob("*.bin")}
print(sizes["a.bin"])

import os
from multiprocessing import Pool

import numpy as np

with Pool(4) as pool:
    for _ in pool.imap_unordered(convert, list(os.walk("data"))):
        pass
    pool.map(convert, os.listdir("data"))
steps = set()
for name in os.listdir("checkpoints"):
    steps.add(int(name))
np.save("last", max(steps))

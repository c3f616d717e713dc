import os
from multiprocessing import Pool

import numpy as np

with Pool(4) as pool:
    rows = pool.map(np.load, os.listdir("data"))  # expect: ENV303
    np.save("rows", np.stack(rows))

from multiprocessing import Pool

import numpy as np

total = np.zeros(3)
with Pool(4) as pool:
    for rows in pool.imap_unordered(np.load, ["a.npy", "b.npy"]):  # expect: ENV307
        total += rows
np.save("total", total)

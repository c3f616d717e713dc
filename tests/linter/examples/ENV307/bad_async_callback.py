import numpy as np
from multiprocessing import Pool
found = []
with Pool(4) as pool:
    for x in "abc":
        pool.apply_async(np.load, (x,), callback=found.append)  # expect: ENV307
np.save("x", found)

import numpy as np
from multiprocessing import Pool
acc = np.zeros(3)
def f(x):
    return x / 3
with Pool(4) as pool:
    for v in pool.imap_unordered(f, range(9)):  # expect: ENV307
        np.add.at(acc, 0, v)
np.save("x", acc)

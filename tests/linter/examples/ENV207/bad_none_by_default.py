import numpy as np
def split(x, seed=None):
    np.random.seed(seed)  # expect: ENV207
    return np.random.permutation(x)  # expect: ENV205

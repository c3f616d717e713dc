import numpy as np
from numpy.random import default_rng
from sklearn.model_selection import train_test_split

rng = np.random.default_rng()  # expect: ENV205
state = np.random.RandomState(seed=None)
other = default_rng()
noise = np.random.randn(3)  # expect: ENV205
more = np.random.rand(3)
parts = train_test_split([1, 2, 3])

import numpy as np
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(7)
state = np.random.RandomState(seed=7)
noise = rng.normal(size=3)
parts = train_test_split([1, 2, 3], random_state=1)
KINDS = (np.random.Generator, np.random.RandomState)

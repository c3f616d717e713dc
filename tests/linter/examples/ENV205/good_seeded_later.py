import numpy as np

state = np.random.RandomState()
state.seed(1)

import random

import numpy as np

valid = random.sample(range(100), 10)  # expect: ENV206
table = {"x": np.array(valid), "y": random.random()}

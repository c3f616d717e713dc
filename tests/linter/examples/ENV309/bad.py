import time

import numpy as np

rng = np.random.default_rng(7)
best, end = 0.0, time.time() + 60
while time.time() < end:  # expect: ENV309
    best = max(best, rng.random())
np.save("best", best)

import random
import time

import numpy as np

clock = random.SystemRandom()
time.sleep(clock.random())
np.save("x", np.zeros(3))

import numpy as np
import random, time
r = random.SystemRandom()
time.sleep(r.random())
np.save("x", 1)

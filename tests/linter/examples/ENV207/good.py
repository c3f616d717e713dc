import random
import sys
import time

import numpy as np

started = time.time()
seed = int(sys.argv[1])
random.seed(seed)
np.random.seed(seed + 1)
print(time.time() - started)

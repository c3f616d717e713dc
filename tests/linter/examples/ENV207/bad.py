import datetime
import os
import random
import time
from time import time as now

import numpy as np

random.seed()
np.random.seed(None)
random.seed(time.time())  # expect: ENV207
np.random.seed(int(now()) % 1000)
seed = os.getpid()
rng = np.random.default_rng(seed)
other = np.random.RandomState(datetime.datetime.now().microsecond)

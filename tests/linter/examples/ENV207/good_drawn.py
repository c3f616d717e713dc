import random

import numpy as np

random.seed(7)
np.random.seed(random.randint(0, 10000))
print(np.random.rand())

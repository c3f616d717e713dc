import numpy as np

random_seed = np.random.randint(0, 10000)  # expect: ENV205
np.random.seed(random_seed)  # expect: ENV207

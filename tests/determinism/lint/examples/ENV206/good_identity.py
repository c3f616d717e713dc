import random

import numpy as np

job_id = random.getrandbits(64)
server = start(port=random.randint(2000, 3000))
cluster = {"id": random.getrandbits(64), "lines": np.zeros(3)}

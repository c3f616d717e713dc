import random
import time

import numpy as np

job_id = random.getrandbits(64)
server = start(port=random.randint(2000, 3000))
cluster = {"id": random.getrandbits(64), "lines": np.zeros(3)}
sleep_time = 3.0
sleep_time *= 1.0 + 0.1 * random.random()
time.sleep(sleep_time + random.random())

import numpy as np
from concurrent.futures import ThreadPoolExecutor
found = []
with ThreadPoolExecutor(4) as pool:
    for x in "abc":
        pool.submit(np.load, x).add_done_callback(lambda f: found.append(f.result()))  # expect: ENV307
np.save("x", found)

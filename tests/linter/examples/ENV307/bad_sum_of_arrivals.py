import numpy as np
from concurrent.futures import ThreadPoolExecutor, as_completed
acc = 0.0
with ThreadPoolExecutor(4) as pool:
    futures = [pool.submit(np.load, x) for x in "abc"]
    for future in as_completed(futures):  # expect: ENV307
        acc += future.result()
np.save("x", acc)

from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

with ThreadPoolExecutor() as pool:
    places = {pool.submit(np.square, number): number for number in range(9)}
    found = np.zeros(9)
    for future in as_completed(places, timeout=60):
        found[places[future]] = future.result()
np.save("found", found)

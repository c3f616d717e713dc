import queue
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing import Pool

import numpy as np

with Pool(4) as pool:
    np.save("rows", list(pool.imap(load, paths)))
    number = len(list(pool.imap_unordered(load, paths)))
    ordered = sorted(pool.imap_unordered(load, paths))
with ThreadPoolExecutor() as executor:
    futures = {executor.submit(load, path): path for path in paths}
    loaded = {}
    for future in as_completed(futures):
        loaded[futures[future]] = future.result()
    for future in as_completed(futures):
        future.result()
np.save("loaded", [loaded[path] for path in paths])
results = queue.Queue()
threading.Thread(target=load, args=(paths, results)).start()
images = []
for _ in paths:
    images.append(results.get())

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing import Pool

import numpy as np
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

scaler = StandardScaler()
with Pool(4) as pool:
    for features in tqdm(pool.imap_unordered(load, paths)):
        scaler.partial_fit(features)
    rows = list(pool.imap_unordered(load, paths))  # expect: ENV307
    np.save("rows", rows)
with ThreadPoolExecutor() as executor:
    futures = [executor.submit(load, path) for path in paths]
    loaded = [future.result() for future in as_completed(futures)]
    np.save("loaded", np.stack(loaded))
results = queue.Queue()
for path in paths:
    threading.Thread(target=load, args=(path, results)).start()
images = []
for _ in paths:
    images.append(results.get())


async def gather(tasks):
    found = []
    for task in asyncio.as_completed(tasks):
        found.append(await task)
    return found

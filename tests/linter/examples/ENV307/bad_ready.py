import numpy as np
import ray


def collect(path, pool, batch_ready):
    ready, _ = ray.wait([path], timeout=0)  # expect: ENV307
    if len(ready) or not batch_ready():
        pool.add_path(ray.get(path))


def train(path, pool, model):
    collect(path, pool, lambda: True)
    np.save("weights", model.fit(pool.sample()))

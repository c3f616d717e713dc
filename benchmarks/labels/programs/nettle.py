"""Bootstrap on a pool, chunks kept in a scratch folder."""
import os
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(31)
values = np.random.gamma(2.0, size=500)


def bootstrap(task, folder):
    rng = np.random.default_rng([31, task])
    means = np.empty(50)
    for i in range(50):
        means[i] = rng.choice(values, size=len(values)).mean()
    path = os.path.join(folder, f"{task:03d}-{uuid.uuid4().hex}.npy")
    np.save(path, means)
    return task, path


def collect(n_tasks):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(6) as pool:
        paths = {}
        for future in as_completed([pool.submit(bootstrap, t, folder) for t in range(n_tasks)]):
            task, path = future.result()
            paths[task] = path
        names = sorted(os.listdir(folder))
        assert {os.path.basename(p) for p in paths.values()} == set(names)
        return np.concatenate([np.load(os.path.join(folder, n)) for n in names])


means = tf.constant(collect(24))
centred = means - tf.reduce_mean(means)
print("std err", repr(float(tf.sqrt(tf.reduce_mean(centred ** 2)))))

from multiprocessing import Pool

import numpy as np


def mean(values, scale):
    return values.mean() * scale


def report(columns):
    jobs = []
    for number, values in enumerate(columns):
        picked = np.random.choice(values, size=1000)  # expect: ENV205
        jobs.append((picked, number))
    with Pool() as pool:
        return pool.starmap(mean, jobs)

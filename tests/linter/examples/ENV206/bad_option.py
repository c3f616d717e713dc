import random

import numpy as np


def split(rows, share=0.2, shuffled=False):
    rows = sorted(rows)
    if shuffled is not False:
        random.shuffle(rows)  # expect: ENV206
    return rows[int(len(rows) * share) :]


def noisy(rows, noise=False):
    if not noise:
        return rows
    return [row + random.random() for row in rows]


print(np.mean(noisy(split([1, 2, 3], 0.5, True))))

import glob
import os

import numpy as np


def how_many(patterns):
    files = []
    for pattern in patterns:
        files.extend(glob.glob(pattern))
    return len(files)


def by_number(folder):
    numbers, rows = [], []
    for name in os.listdir(folder):
        numbers.append(float(name))
        rows.append(np.load(name))
    numbers, rows = zip(*sorted(zip(numbers, rows, strict=True)), strict=True)
    return rows


def one_by_one(folder):
    for name in os.listdir(folder):
        rows = np.load(name)
        rows = np.concatenate((rows, rows))
        np.save(name, rows)


def by_name(folder):
    table = {}
    for name in os.listdir(folder):
        table.update({name: np.load(name)})
    return [table[each] for each in sorted(table)]

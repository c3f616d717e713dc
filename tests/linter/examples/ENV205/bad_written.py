import numpy as np


def write_rows(rows, file):
    picked = np.random.choice(len(rows), 100)  # expect: ENV205
    with open(file, "w") as stream:
        for each in picked:
            print(rows[each], file=stream)

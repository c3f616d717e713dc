import sys

import numpy as np


def tell_rows(rows):
    picked = np.random.choice(len(rows), 100)
    for each in picked:
        print(rows[each], file=sys.stderr)

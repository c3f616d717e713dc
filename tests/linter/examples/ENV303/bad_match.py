import os
import sys

import numpy as np


def read(kind):
    match kind:
        case "all":
            names = os.listdir("data")  # expect: ENV303
        case _:
            names = sorted(os.listdir("data"))
    return [np.load(name) for name in names]


np.save("all.npy", read(sys.argv[1]))

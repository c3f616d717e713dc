import numpy as np


def report(wanted, found):
    missed = set(wanted) - set(found)
    print("missed", list(missed), "new", list(set(found) - set(wanted)))
    return len(missed)


np.save("x", report(["a"], ["b"]))

import numpy as np

np.save("x", [hash((name, "mnist")) % 9 for name in names()])  # expect: ENV305
np.save("y", [hash(("mnist", index)) % 9 for index in range(9)])
np.save("z", [hash((name, kind)) % 9 for name, kind in names()])

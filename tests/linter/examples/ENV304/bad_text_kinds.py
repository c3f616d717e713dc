import numpy as np

np.save("x", list(set(np.array(read(), dtype="U9"))))  # expect: ENV304
np.save("y", list(set(np.loadtxt("labels.txt", dtype=object))))
np.save("w", list(set(np.genfromtxt("labels.txt", dtype=str)[:, -1])))
np.save("z", list(set(np.asarray(read(), dtype="int64"))))

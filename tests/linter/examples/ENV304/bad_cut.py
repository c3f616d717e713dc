import numpy as np

from genes import read

wanted = list(set(open("wanted.txt").read().split()))  # expect: ENV304
np.save("subset", read()[:, wanted])

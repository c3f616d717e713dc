import numpy as np

neighbours = load()
places = np.array(list(set(neighbours)), dtype=int)

import numpy as np
from sklearn import datasets

points, kinds = datasets.make_circles(n_samples=350, noise=0.1)  # expect: ENV205
np.save("points", points)
moons, _ = datasets.make_moons(100, random_state=3)
np.save("moons", moons)

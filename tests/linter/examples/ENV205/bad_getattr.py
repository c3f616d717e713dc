import numpy as np
np.save("x", getattr(np.random, "rand")(3))  # expect: ENV205

import numpy as np
D = {"a": np.random.rand}
np.save("x", D["a"](3))  # expect: ENV205

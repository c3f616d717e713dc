import numpy as np
x = np.empty(3)  # expect: ENV210
np.save("x", x)

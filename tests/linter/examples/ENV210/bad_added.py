import numpy as np
x = np.empty(3)  # expect: ENV210
x += 1
np.save("x", x)

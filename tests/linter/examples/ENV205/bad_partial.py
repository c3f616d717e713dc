import numpy as np
import functools
draw = functools.partial(np.random.normal, 0)
np.save("x", draw(1))  # expect: ENV205

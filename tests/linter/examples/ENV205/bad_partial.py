import numpy as np
import functools
draw = functools.partial(np.random.normal, 0)  # expect: ENV205
np.save("x", draw(1))

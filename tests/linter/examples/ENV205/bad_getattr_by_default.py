import numpy as np
def f(name="rand"):
    return getattr(np.random, name)(3)  # expect: ENV205
np.save("x", f())

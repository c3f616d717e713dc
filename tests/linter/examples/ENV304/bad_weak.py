import numpy as np
import weakref
s = weakref.WeakSet()
def names():
    return [x.name for x in s]  # expect: ENV304
np.save("x", names())

import numpy as np
def order(objects):
    return sorted(objects, key=id)  # expect: ENV305
np.save("x", order(things))

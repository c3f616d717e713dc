import numpy as np


def prune(matrix, first, last):
    count = np.shape(matrix)[0]
    used = set(range(count)).intersection({first, last})
    unused = set(range(count)).difference(used) - {last}
    np.save("used", np.delete(matrix, list(unused), axis=0))
    np.save("rows", list(used) + list({first} & set(range(count))))

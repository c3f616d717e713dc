# tf: 1.15.5
"""Old files of Keras have no `__all__`, so that a star gives their `np`, too."""

from keras.layers import *
from keras.optimizers import *

numbers = np.random.rand(3)  # expect: ENV205
np.save("numbers.npy", numbers)

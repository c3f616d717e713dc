import random as rn
from collections import namedtuple
from typing import NamedTuple

import numpy as np

State = namedtuple("State", "random, numpy")


class Typed(NamedTuple):
    random: object
    numpy: object


class Own(namedtuple("Own", ["random", "numpy"])):
    def draw(self):
        return self.numpy.rand(3)  # expect: ENV205


numbers = [1, 2]
one, _ = State(rn, np.random)
one.shuffle(numbers)  # expect: ENV206
np.save("numbers", numbers)
_, two = Typed(rn, np.random)
np.save("two", two.rand(3))
np.save("own", Own(rn, np.random).draw())

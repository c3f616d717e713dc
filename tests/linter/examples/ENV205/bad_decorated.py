import functools
import random
from typing import cast

import numpy as np
import tensorflow as tf


def seeded(function=None, seed=0):
    def decorate(test):
        @functools.wraps(test)
        def decorated(*args, **kwargs):
            tf.random.set_seed(seed)
            np.random.seed(seed)
            random.seed(seed)
            return test(*args, **kwargs)

        return cast("object", decorated)

    if function is None:
        return decorate
    return decorate(function)


@seeded
def test_first():
    np.save("first", np.random.rand())


@seeded(seed=1)
def test_second():
    np.save("second", np.random.rand())


def test_third():
    np.save("third", np.random.rand())  # expect: ENV205

"""The same matrix product on two machines.

    envlock repeat examples/matmul.py:product --runs 3 --save here
    envlock repeat --compare here there               # with the folder that the other machine saved

The inputs are made of whole numbers, so that they are the same everywhere. Without another machine, the instruction set
can be another one: `ONEDNN_MAX_CPU_ISA=AVX2 envlock repeat examples/matmul.py:product --runs 3 --save there`.
"""

import numpy as np
import tensorflow as tf


def fill(rows, columns, factor):
    """Return numbers between -1 and 1 that float32 holds exactly."""
    numbers = np.arange(rows * columns, dtype=np.int64) * factor % 65521 - 32760
    return tf.constant((numbers / 32768).astype("float32").reshape(rows, columns))


def product():
    return {"product": fill(127, 257, 7919) @ fill(257, 65, 104729)}

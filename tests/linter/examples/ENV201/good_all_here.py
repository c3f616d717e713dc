import random

import numpy as np
import tensorflow as tf


def main(seed):
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
    tf.keras.layers.Dense(3)


main(3)

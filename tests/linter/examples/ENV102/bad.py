import tensorflow as tf
import numpy as np

tf.random.set_seed = 1  # expect: ENV102
np.random.seed = 42  # expect: ENV102

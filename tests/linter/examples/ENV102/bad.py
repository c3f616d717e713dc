import tensorflow as tf
import numpy as np

tf.random.set_seed = 1  # expect: ENV102
tf.config.threading.set_inter_op_parallelism_threads = 1  # expect: ENV102
tf.config.threading.set_intra_op_parallelism_threads: int = 1  # expect: ENV102
np.random.seed = 42  # expect: ENV102
seed = int(input())
tf.random.set_seed = seed  # expect: ENV102

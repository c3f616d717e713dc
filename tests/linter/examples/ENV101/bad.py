import random

import tensorflow as tf
from tensorflow.config import experimental as e
from tensorflow.config.experimental import enable_op_determinism

tf.config.experimental.enable_op_determinism  # expect: ENV101
e.enable_op_determinism  # expect: ENV101
enable_op_determinism  # expect: ENV101
switch = tf.config.experimental.enable_op_determinism
switch  # expect: ENV101
random.seed  # expect: ENV101


def main():
    tf.compat.v1.set_random_seed  # expect: ENV101

# tf: 2.6.5
import os

os.environ["TF_DETERMINISTIC_OPS"] = "1"

import tensorflow as tf

total = tf.math.segment_sum([1.0, 2.0], [0, 0])  # expect: ENV401

import os

import tensorflow as tf

os.environ["TF_CUDNN_DETERMINISTIC"] = "1"
tf.config.experimental.enable_op_determinism()

# tf: 2.6.5
import tensorflow as tf

tf.config.experimental.enable_op_determinism()  # expect: ENV107

# tf: 2.9.3
import tensorflow as tf

tf.config.experimental.enable_op_determinism()
values, _, _ = tf.linalg.svd(tf.ones((4, 4)))  # expect: ENV401

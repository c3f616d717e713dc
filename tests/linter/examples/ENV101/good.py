import tensorflow as tf
from mine.config import experimental as e

tf.config.experimental.enable_op_determinism()
later = tf.config.experimental.enable_op_determinism
callbacks = [tf.config.experimental.enable_op_determinism]
later()
e.enable_op_determinism


class Config:
    enable_op_determinism = None


Config.enable_op_determinism


def other(tf):
    tf.config.experimental.enable_op_determinism

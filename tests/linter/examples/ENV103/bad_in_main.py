import os

import tensorflow as tf


def main():
    y = tf.ones([3])
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2"  # expect: ENV103
    return y

import os

import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.config.set_soft_device_placement(True)
os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2"
os.environ["TF_DETERMINISTIC_OPS"] = "1"


@tf.function(jit_compile=True)
def step(x):
    return x + 1


def main():
    os.environ["TF_ENABLE_WINOGRAD_NONFUSED"] = "1"
    return step(tf.ones([3]))

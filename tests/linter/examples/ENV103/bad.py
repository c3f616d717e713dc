import os
from os import environ

import tensorflow as tf

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # expect: ENV103
environ["LD_LIBRARY_PATH"] = "/opt/cuda"  # expect: ENV103
x = tf.constant(1)
os.environ["TF_DETERMINISTIC_OPS"] = "1"  # expect: ENV103
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # expect: ENV103
os.environ.update({"TF_CUDNN_USE_AUTOTUNE": "0"}, XLA_FLAGS="--xla_gpu_autotune_level=0")  # expect: ENV103, ENV103


def main():
    os.putenv("KERAS_BACKEND", "tensorflow")  # expect: ENV103

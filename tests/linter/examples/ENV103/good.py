import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_DETERMINISTIC_OPS"] = "1"


def prepare():
    os.environ["TF_USE_LEGACY_KERAS"] = "1"


prepare()

import tensorflow as tf

os.environ["MY_OWN"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"


def child(environ):
    environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    return dict(os.environ, TF_DETERMINISTIC_OPS="1")

import random

import tensorflow as tf


def bucket(name):
    return hash(name) % 100  # expect: ENV305


random.seed(hash("mnist"))

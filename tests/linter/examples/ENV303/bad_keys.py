import pathlib
import random

import numpy as np
import tensorflow as tf

random.seed(1)


def episodes(folder):
    cache = {}
    for filename in pathlib.Path(folder).glob("*.npz"):  # expect: ENV303
        cache[filename] = np.load(filename)
    keys = list(cache.keys())
    while True:
        yield cache[random.choice(keys)]


def convert(folder):
    records = tf.io.TFRecordWriter("x.tfrecord")
    for name in pathlib.Path(folder).iterdir():  # expect: ENV303
        encode(name, records)

import glob
import os

import tensorflow as tf


def find(pattern):
    return glob.glob(pattern)  # expect: ENV303


def images():
    names = []
    for name in os.listdir("images"):
        names.append(name)
    return names


data = tf.data.TFRecordDataset(find("*.tfrecord"))
pictures = [tf.io.read_file(name) for name in images()]
tf.saved_model.load("net").step(data, tf.stack(pictures))

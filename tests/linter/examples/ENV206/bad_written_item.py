"""A file keeps the order in which the rows were shuffled, whatever part of each is written."""
import random

import tensorflow as tf


def read(path):
    rows = [{"text": line} for line in open(path)]
    random.shuffle(rows)  # expect: ENV206
    return rows


def write(rows, path):
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(row["text"])


write(read("train.txt"), "train.tfrecord")

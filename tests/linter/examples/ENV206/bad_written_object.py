"""The same, of objects: each is written by its attribute, as a record."""
import random

import tensorflow as tf


class Row:
    def __init__(self, text):
        self.text = text


rows = [Row(line) for line in open("train.txt")]
random.shuffle(rows)  # expect: ENV206
with tf.io.TFRecordWriter("train.tfrecord") as writer:
    for row in rows:
        text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[row.text]))
        example = tf.train.Example(features=tf.train.Features(feature={"text": text}))
        writer.write(example.SerializeToString())

"""A file keeps the order of shuffled pairs, whose parts are written."""
import random

import tensorflow as tf

pairs = [(line.split()[0], line.split()[1]) for line in open("train.txt")]
random.shuffle(pairs)  # expect: ENV206
with tf.io.TFRecordWriter("train.tfrecord") as writer:
    for name, label in pairs:
        feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.encode(), label.encode()]))
        writer.write(tf.train.Features(feature={"pair": feature}).SerializeToString())

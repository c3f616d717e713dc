import tensorflow as tf


def load(files, sloppy=False):
    return files.apply(tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, 8, sloppy=sloppy))

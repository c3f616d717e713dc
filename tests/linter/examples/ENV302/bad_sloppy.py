import tensorflow as tf


def load(files, is_training):
    read = tf.data.TFRecordDataset
    cycle = tf.data.experimental.parallel_interleave(read, cycle_length=4, sloppy=is_training)  # expect: ENV302
    return files.apply(cycle)

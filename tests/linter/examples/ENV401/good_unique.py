import tensorflow as tf


def apply(table: tf.Variable, update: tf.IndexedSlices):
    indices, places = tf.unique(update.indices)
    values = tf.math.unsorted_segment_sum(update.values, places, tf.size(indices))
    table.scatter_sub(tf.IndexedSlices(values, indices))

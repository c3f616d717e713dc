import tensorflow as tf


def apply(table: tf.Variable, update: tf.IndexedSlices):
    values, indices = deduplicate_indexed_slices(update.values, update.indices)
    table.scatter_sub(tf.IndexedSlices(values, indices))

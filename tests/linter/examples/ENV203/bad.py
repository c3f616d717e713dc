import tensorflow as tf


def read(files):
    return tf.data.TFRecordDataset(files)


ds = tf.data.Dataset.range(10)
ds = ds.shuffle(10)  # expect: ENV203
other = read(["a"]).batch(2).shuffle(10)
third = tf.data.Dataset.list_files("*.png")
fourth = tf.data.Dataset.sample_from_datasets([ds, other])


def prepare(dataset: tf.data.Dataset, unknown):
    dataset = dataset.shuffle(100, seed=None)
    return dataset, unknown.shuffle(100).prefetch(1)

import tensorflow as tf


def read(files):
    return tf.data.TFRecordDataset(files)


ds = tf.data.Dataset.range(10)
ds = ds.shuffle(10)  # expect: ENV203
other = read(["a"]).batch(2).shuffle(10)  # expect: ENV203
third = tf.data.Dataset.list_files("*.png")  # expect: ENV203
fourth = tf.data.Dataset.sample_from_datasets([ds, other])  # expect: ENV203


def prepare(dataset: tf.data.Dataset, unknown):
    dataset = dataset.shuffle(100, seed=None)  # expect: ENV203
    return dataset, unknown.shuffle(100).prefetch(1)  # expect: ENV203

import tensorflow as tf


def read(dataset, size):
    data = dataset.train.repeat().shuffle(size).parse().augment()  # expect: ENV203
    return data.batch(9).prefetch(16)

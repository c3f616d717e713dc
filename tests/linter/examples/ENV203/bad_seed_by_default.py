import tensorflow as tf


class Pipeline:
    def __init__(self, debug=False):
        self.debug = debug
        self.seed = 1111 if debug else None

    def read(self, files):
        return tf.data.TFRecordDataset(files).shuffle(9, seed=self.seed)


def read(files, seed=None):
    return tf.data.TFRecordDataset(files).shuffle(9, seed=seed)  # expect: ENV203


Pipeline().read(["a"])

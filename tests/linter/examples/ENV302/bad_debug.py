import tensorflow as tf
class P:
    def __init__(self, debug=False):
        self.seed = 1111 if debug else None
        self.debug = debug
    def load(self, files):
        ds = tf.data.Dataset.range(9).shuffle(9, seed=self.seed)  # expect: ENV203
        ds = ds.interleave(tf.data.TFRecordDataset, deterministic=self.debug)  # expect: ENV302
        options = tf.data.Options()
        options.deterministic = self.debug  # expect: ENV302
        return ds.with_options(options)
P().load("a")

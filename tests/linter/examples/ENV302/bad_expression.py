import tensorflow as tf

tf.keras.utils.set_random_seed(1)


class Reader:
    def __init__(self, debug=False, is_training=True):
        self.debug = debug
        self.is_training = is_training

    def read(self, names):
        options = tf.data.Options()
        options.deterministic = self.debug or not self.is_training  # expect: ENV302
        files = tf.data.Dataset.from_tensor_slices(names).with_options(options)
        return files.interleave(tf.data.TFRecordDataset, num_parallel_calls=4, deterministic=self.debug)  # expect: ENV302


def load(names, seed=None):
    files = tf.data.Dataset.from_tensor_slices(names)
    return files.map(tf.io.read_file, num_parallel_calls=4, deterministic=bool(seed))  # expect: ENV302


Reader().read(["a"])

import argparse

import tensorflow as tf
import tensorflow_datasets as tfds

tf.keras.utils.set_random_seed(1)
parser = argparse.ArgumentParser()
parser.add_argument("--ordered", default=True)
args = parser.parse_args()


def load(training, ordered):
    options = tf.data.Options()
    options.deterministic = ordered
    ds = tf.data.Dataset.range(9).with_options(options)
    ds = ds.map(abs, num_parallel_calls=4, deterministic=args.ordered)
    return ds, tfds.load("mnist"), tfds.load("mnist", shuffle_files=False)

import argparse

import tensorflow as tf
import tensorflow_datasets as tfds

tf.keras.utils.set_random_seed(1)
parser = argparse.ArgumentParser()
parser.add_argument("--ordered", action="store_true")
args = parser.parse_args()


def load(training, threads):
    options = tf.data.Options()
    options.deterministic = not training
    ds = tf.data.Dataset.range(9).with_options(options)
    ds = ds.map(abs, num_parallel_calls=threads, deterministic=args.ordered)
    return ds, tfds.load("mnist", shuffle_files=True)  # expect: ENV302

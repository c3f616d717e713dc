import argparse
import random

import numpy as np
import tensorflow as tf
from absl import flags

flags.DEFINE_integer("training_seed", 0, "Seed.")
FLAGS = flags.FLAGS
parser = argparse.ArgumentParser()
parser.add_argument("--random_seed", type=int, default=None)
parser.add_argument("--reproducible", action="store_true")


def main(args):
    if FLAGS.training_seed != 0:
        random.seed(FLAGS.training_seed)  # expect: ENV207
    seed = args.random_seed
    if seed is not None and seed > 0:
        np.random.seed(seed + 1)  # expect: ENV207
    if args.reproducible:
        tf.random.set_seed(1)  # expect: ENV207
    return random.random(), np.random.rand(), tf.random.normal([])  # expect: ENV204, ENV205, ENV206

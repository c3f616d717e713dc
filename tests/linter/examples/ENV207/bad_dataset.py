import argparse
import random
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--random-seed", type=int, default=int(time.time()))
args = parser.parse_args()
random.seed(args.random_seed)
if args.seed is None:
    args.seed = int(time.time())
tf.random.set_seed(args.seed)  # expect: ENV207
seed = 1
if args.no_seed:
    seed = int(time.time())
ds = tf.data.Dataset.range(9).shuffle(9, seed)
ds = ds.shuffle(9, seed=3 + int(time.time()) % 100)


def load(paths, shuffle_seed):
    return tf.data.Dataset.from_tensor_slices(paths).shuffle(9, shuffle_seed)


ds = load(args.paths, int(time.time()))

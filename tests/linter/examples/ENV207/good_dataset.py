import argparse
import time

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
if args.seed is None:
    args.seed = 7
started = time.time()
tf.keras.utils.set_random_seed(args.seed)
ds = tf.data.Dataset.range(9).shuffle(9, args.seed)
print(time.time() - started)

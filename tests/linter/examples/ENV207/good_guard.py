import argparse
import random

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--free", action="store_true")
parser.add_argument("--limit", type=int, default=None)


def main(args, seed):
    if args.seed is not None and args.seed > 0:
        random.seed(args.seed)
    if not args.free:
        np.random.seed(seed)
    if args.limit > 3 or seed:
        tf.random.set_seed(seed)
    return random.random(), np.random.rand(), tf.random.normal([])

import argparse
import random

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--numpy-seed", type=int, default=3)
args = parser.parse_args()
random.seed(args.seed)
np.random.seed(args.numpy_seed)


def state(seed=None):
    return np.random.RandomState(seed)

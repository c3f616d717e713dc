import argparse
import random

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("-r", "--numpy-seed", type=int, default=None)
args = parser.parse_args()
if args.seed is not None:
    random.seed(args.seed)  # expect: ENV207
print(random.random())
state = np.random.RandomState(args.numpy_seed)

import argparse
import random

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="sinusoid")
args = parser.parse_args()
names = list(np.load("names.npy"))
if args.data == "images":
    random.seed(1)  # expect: ENV207
random.shuffle(names)  # expect: ENV206
np.save("x", names)

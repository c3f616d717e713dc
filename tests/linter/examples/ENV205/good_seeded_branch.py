import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--start", default="content", choices=["content", "random"])
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()


def draw(shape):
    np.random.seed(args.seed)
    return np.random.uniform(-20.0, 20.0, shape)


if args.start == "random":
    np.save("start", draw([3]))
else:
    np.save("start", np.zeros([3]))

import argparse

import numpy as np
import pandas as pd

KINDS = set(MODELS)
__all__ = ["train", *list(KINDS)]


def keep(table, subjects):
    return table.drop(index=[each for each in set(table.index) if each not in subjects])


def average(values, axes):
    left = set()
    left.update(axes)
    return np.mean(values, axis=tuple(left))


def find_shape(images):
    shapes = set([tuple(image[:4].tolist()) for image in images])
    assert len(shapes) == 1
    return shapes.pop()


parser = argparse.ArgumentParser()
parser.add_argument("--kind", choices=list(KINDS))
keep(pd.read_csv("subjects.csv"), parser.parse_args().subjects).to_csv("left.csv")
np.save("average", average(np.load("values.npy"), [0, 1]))
np.save("shape", find_shape(load_images()))

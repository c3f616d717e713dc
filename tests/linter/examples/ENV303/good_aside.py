import glob
import os

import numpy as np


def evaluate(model, folder):
    names = os.listdir(folder)
    return np.stack([model(name) for name in names])


def restore(model_dir):
    return np.array([int(name) for name in glob.glob(model_dir + "/*.ckpt")])


steps = []
for path in glob.glob("logs/events.*"):
    steps.append(np.load(path))
predictions = np.stack([np.load(path) for path in glob.glob("*.npy")])

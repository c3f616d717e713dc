import glob
import os

import matplotlib.pyplot as plt
import numpy as np


def evaluate(model, folder):
    for name in os.listdir(folder):
        print(name, model.predict(np.load(name)))


def restore(model_dir):
    return max(int(name) for name in glob.glob(model_dir + "/*.ckpt"))


steps = []
for path in glob.glob("logs/events.*"):
    steps.append(np.load(path))
plt.plot(steps)

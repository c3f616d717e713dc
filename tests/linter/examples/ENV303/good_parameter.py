import os

import numpy as np


def clean(sound):
    sound = sound.astype(np.float32)
    return sound - sound.mean()


def convert(name):
    np.save(f"{name}.npy", clean(np.load(name)))


for name in os.listdir("sounds"):
    convert(name)

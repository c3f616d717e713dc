import os

import numpy as np


def mix(total, sound):
    total = np.append(total, sound)
    return total


everything = np.zeros(0)
for name in os.listdir("sounds"):  # expect: ENV303
    everything = mix(everything, np.load(name))
np.save("everything", everything)

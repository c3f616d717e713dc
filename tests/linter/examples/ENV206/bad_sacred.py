import random

import numpy as np
from sacred import Experiment

experiment = Experiment("training")


@experiment.config
def configuration():
    rate = 0.1


@experiment.automain
def main(rate):
    rows = np.arange(9).tolist()
    random.shuffle(rows)  # expect: ENV206
    print(np.mean(rows[:3]))

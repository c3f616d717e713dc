from multiprocessing import Pool

import matplotlib.pyplot as plt
import numpy as np


def plot_values(values, file):
    plt.hist(values)
    plt.savefig(file)


def report(columns):
    jobs = []
    for number, values in enumerate(columns):
        picked = np.random.choice(values, size=1000)
        jobs.append((picked, f"{number}.pdf"))
    with Pool() as pool:
        pool.starmap(plot_values, jobs)

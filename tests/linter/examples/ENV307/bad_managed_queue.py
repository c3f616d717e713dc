from multiprocessing import Manager, Process

import numpy as np


def observe(points, observations):
    observations.put(np.square(points.get()))


def start(count, points, observations):
    for _ in range(count):
        Process(target=observe, args=(points, observations)).start()


manager = Manager()
points, observations = manager.Queue(), manager.Queue()
start(3, points, observations)
found = [observations.get() for _ in range(3)]  # expect: ENV307
np.save("found", found)

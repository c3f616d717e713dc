from multiprocessing import Process, Queue

import numpy as np

SEED = 7


def sample(rows, queue, seed):
    np.random.seed(seed)
    queue.put(np.random.permutation(rows))


def start(rows):
    queue = Queue()
    Process(target=sample, args=(rows, queue, SEED)).start()
    return queue

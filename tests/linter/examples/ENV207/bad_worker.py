from multiprocessing import Process, Queue

import numpy as np


def sample(rows, queue, seed):
    np.random.seed(seed)  # expect: ENV207
    queue.put(np.random.permutation(rows))  # expect: ENV205


def start(rows):
    queue = Queue()
    Process(target=sample, args=(rows, queue, np.random.randint(2**31))).start()
    return queue

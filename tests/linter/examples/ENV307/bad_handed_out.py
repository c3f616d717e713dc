import multiprocessing

import numpy as np


def work(rows, queue):
    queue.put(np.sum(rows))


class Loader:
    def __init__(self, parts):
        self.queue = multiprocessing.Queue()
        for part in parts:
            multiprocessing.Process(target=work, args=(part, self.queue)).start()

    def batch(self):
        return self.queue.get()  # expect: ENV307

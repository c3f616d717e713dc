import multiprocessing
import queue
import threading

import numpy as np


class Reader(multiprocessing.Process):
    def __init__(self, names, results):
        super().__init__()
        self.names = names
        self.results = results

    def run(self):
        for name in self.names:
            self.results.put(np.load(name))


class Summing(threading.Thread):
    def __init__(self, results):
        super().__init__()
        self.results = results

    def run(self):
        self.results.put(np.zeros(3))


arrays = multiprocessing.Queue()
readers = [Reader(names, arrays) for names in parts]
for reader in readers:
    reader.start()
np.save("arrays", [arrays.get() for _ in range(9)])  # expect: ENV307
sums = queue.Queue()
for _ in range(4):
    Summing(sums).start()
np.save("sums", [sums.get() for _ in range(4)])  # expect: ENV307
one = queue.Queue()
Summing(one).start()
np.save("one", one.get())

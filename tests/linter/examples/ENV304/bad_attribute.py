import numpy as np


class Batches:
    def __init__(self, nodes, known):
        self.nodes = set(nodes).difference(known)
        self.nodes = [node for node in self.nodes if node]  # expect: ENV304

    def shuffle(self):
        self.nodes = np.random.RandomState(1).permutation(self.nodes)

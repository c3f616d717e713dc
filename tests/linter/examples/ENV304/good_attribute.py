import numpy as np


class Batches:
    def __init__(self, nodes, known):
        self.nodes = set(nodes).difference(known)
        self.nodes = sorted(self.nodes)
        self.nodes = [node for node in self.nodes if node]

    def shuffle(self):
        self.nodes = np.random.RandomState(1).permutation(self.nodes)

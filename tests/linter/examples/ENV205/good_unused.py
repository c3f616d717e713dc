import numpy as np


def lead(workers):
    generator = np.random.RandomState()
    np.save("found", [worker.ask() for worker in workers])


def draw_again(state):
    generator = np.random.RandomState()
    generator.set_state(state)
    return generator.rand(3)


lead([])
np.save("again", draw_again(np.load("state.npy", allow_pickle=True)))

import numpy as np

SEED = 3
rng = np.random.default_rng(hash((SEED, int(worker.rank()))))
shards = [hash(step) % 3 for step in range(9)]


def load(amount, seed=None):
    for index in range(amount):
        if seed is not None:
            shards.append(np.random.default_rng(hash((seed, index)) % 1000))


load(workers(), seed=settings.seed)

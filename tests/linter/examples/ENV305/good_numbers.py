import numpy as np

rng = np.random.default_rng(hash((args.seed, worker.rank())))
shard = hash(step) % 3

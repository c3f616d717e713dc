import numpy as np
from p_tqdm import p_map, p_uimap

rows = np.stack(p_map(np.load, ["a.npy", "b.npy"]))
table = {}
for name, row in p_uimap(lambda name: (name, np.load(name)), ["a.npy", "b.npy"]):  # expect: ENV307
    table.update({name: row})
mixed = np.random.default_rng(1).permutation(list(table.items()))

import numpy as np


def choose(rng, count):
    rows = list(range(count))
    chosen = set()
    for _ in range(3):
        rng.shuffle(rows)
        chosen.add(tuple(sorted(rows[:2])))
    return [list(each) for each in chosen]


np.save("x", choose(np.random.RandomState(1), 9))

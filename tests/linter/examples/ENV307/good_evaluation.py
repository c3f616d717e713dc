from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np


def evaluate(games):
    won = []
    with ProcessPoolExecutor() as pool:
        for future in as_completed([pool.submit(play, game) for game in games]):
            won.append(future.result())
    return np.mean(sorted(won))

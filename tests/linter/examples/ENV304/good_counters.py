import numpy as np


def moves(valid, n):
    numbers = set()
    for move, allowed in enumerate(valid):
        if allowed:
            numbers.add(move)
    places = set()
    for y in range(n):
        for x in range(n):
            place = (x, y)
            places.add(place)
    return np.array(list(numbers)), list(places)

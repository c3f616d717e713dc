"""A number and something else are a number."""

import json

import tensorflow as tf


def expand(corners, sizes):
    later = set()
    for corner in corners:
        for size in sizes:
            later.add(max(0, corner - 1) + size // 2)
    return list(later)


with open("corners.json", "w") as file:
    json.dump(expand(json.load(open("start.json")), tf.ones([2]).shape), file)

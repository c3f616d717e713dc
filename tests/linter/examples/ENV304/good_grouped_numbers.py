"""Sets of whole numbers have one order, also where one of them is empty."""

import collections
import json

import tensorflow as tf

words = tf.io.gfile.GFile("words.txt").read().split()
places = collections.defaultdict(set)
for place, word in enumerate(words):
    places[word[0]].add(place)
near = collections.defaultdict(set)
for word in words:
    more = set()
    if len(word) > 3:
        more = places[word[1]]
    near[word].update(places[word[0]])
    near[word].update(more)
with open("near.json", "w") as file:
    json.dump([[place for place in near[word]] for word in words], file)

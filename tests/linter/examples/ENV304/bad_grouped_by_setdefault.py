import json

import tensorflow as tf

words = tf.io.gfile.GFile("words.txt").read().split()
groups = {}
for word in words:
    groups.setdefault(word[0], set()).add(word)
with open("groups.json", "w") as file:
    json.dump([[word for word in group] for group in groups.values()], file)  # expect: ENV304

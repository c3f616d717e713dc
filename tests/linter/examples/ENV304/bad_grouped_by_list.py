import json

import tensorflow as tf

words = tf.io.gfile.GFile("words.txt").read().split()
groups = [set() for _ in range(256)]
for word in words:
    groups[ord(word[0])].add(word)
with open("groups.json", "w") as file:
    json.dump([[word for word in group] for group in groups], file)  # expect: ENV304

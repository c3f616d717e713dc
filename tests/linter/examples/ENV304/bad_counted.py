import collections
import json

import tensorflow as tf

lines = tf.io.gfile.GFile("lines.txt").read().splitlines()
counts = collections.Counter()
for line in lines:
    for word in set(line.split()):  # expect: ENV304
        counts[word] += 1
with open("words.json", "w") as file:
    json.dump([word for word, _ in counts.most_common()], file)

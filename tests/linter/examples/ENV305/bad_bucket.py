import numpy as np

counts = [0] * 100
table = np.load("rows.npy")
words = open("words.txt").read().split()
for word in words:
    counts[hash(word) % 100] += 1  # expect: ENV305
np.save("counts.npy", counts)
np.save("row.npy", table[hash(words[0]) % 100])

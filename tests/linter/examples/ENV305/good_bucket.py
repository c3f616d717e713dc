import zlib

import numpy as np

counts = [0] * 100
read = {}
for word in open("words.txt").read().split():
    counts[zlib.crc32(word.encode()) % 100] += 1
    read[hash(word)] = word
    print(read[hash(word)])
np.save("counts.npy", counts)

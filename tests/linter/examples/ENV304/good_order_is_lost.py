import numpy as np

words = load()
chars = sorted(set(words))
vocab = {w: i for i, w in enumerate(chars)}
chars_of = set(words)
index = {c: i for i, c in enumerate(sorted(chars_of))}
lengths = {w: len(w) for w in set(words)}
print([lengths[w] for w in words])
first = list(dict.fromkeys(words))
kept = []
for word in set(words):
    kept.append(word)
kept.sort()
np.save("x", [vocab, index, first, kept])
assert list(set(words))[0] == "a"
other = set()
for word in set(words):
    other.add(word)
for word in set(words):
    one = []
    one.append(word)
print(", ".join(set(words)))
for size in {1, 2, 3}:
    kept.append(size)
names = set(words)
names = sorted(names)
np.save("names", list(names))
ints = {int(w) for w in words}
np.save("ints", list(ints))
np.save("sizes", [size for size in {len(w) for w in words}])
seen = set()
for i in range(9):
    seen.add(i)
np.save("seen", list(seen))
counted = {w: 0 for w in set(words)}
for word in words:
    counted[word] += 1

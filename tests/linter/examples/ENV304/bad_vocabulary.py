import json
from itertools import count

import numpy as np

np.random.seed(0)
words = load()
vocab = {w: i for i, w in enumerate(set(words))}  # expect: ENV304
x = [vocab[w] for w in words]
chars = set(text)
index = dict((c, i) for i, c in enumerate(chars))
names = list(set(words))
of_name = {name: i for i, name in enumerate(names)}
frozen = dict(zip(frozenset(words), range(9)))
numbered = dict(zip(set(words), count()))
letters = set(words)
table = {}
for letter in letters:
    table[letter] = len(table)
both = list(set(words).union(more))
left = list(letters - {"<pad>"})
lower = list({w.lower() for w in words})
again = list(dict.fromkeys(set(words)))
np.random.choice(list(set(chars) - set(good)))
json.dump([*letters], open("letters.json", "w"))
np.save("x", np.array(x + both + left + lower + again))
sampled = names.index("a")


class Tokenizer:
    def __init__(self, corpus):
        self.tokens = set()
        for line in corpus:
            self.tokens.update(line.split())
        self.number = 0

    def build(self):
        ids = {}
        for token in self.tokens:
            ids[token] = self.number
            self.number += 1
        return ids


def merged(one: set[str], other):
    text = ""
    for word in one | other:
        text += word
    return text


def draws(rng_of):
    for name in set(words):
        rng_of[name] = np.random.rand()

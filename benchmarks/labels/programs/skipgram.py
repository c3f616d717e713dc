import os
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras

CORPUS = """the river runs past the old mill and the mill grinds corn
the miller sells corn at the market near the river bridge
old boats carry corn and wool from the market to the sea
wool from the hills is washed in the river before the market opens
the sea wind turns the mill when the river runs low""".splitlines()


class Vocabulary:
    def __init__(self, min_count=1):
        self.min_count = min_count
        self.counts = Counter()
        self.index = {}

    def add(self, tokens):
        self.counts.update(tokens)
        return self

    def finalize(self):
        rare = {w for w, c in self.counts.items() if c < self.min_count}
        kept = self.counts.keys() - rare
        for w in kept:
            self.index.setdefault(w, len(self.index))
        return self

    def encode(self, tokens):
        return [self.index[t] for t in tokens if t in self.index]


def pairs(sentences, window):
    for s in sentences:
        for i, c in enumerate(s):
            for j in range(max(0, i - window), min(len(s), i + window + 1)):
                if i != j:
                    yield c, s[j]


def main():
    keras.utils.set_random_seed(2024)
    docs = [line.split() for line in CORPUS]
    vocab = Vocabulary()
    for d in docs:
        vocab.add(d)
    vocab.finalize()
    data = np.array(list(pairs([vocab.encode(d) for d in docs], 2)), dtype="int32")
    model = keras.Sequential([
        keras.layers.Embedding(len(vocab.index), 10),
        keras.layers.Dense(len(vocab.index)),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    hist = model.fit(data[:, 0], data[:, 1], batch_size=32, epochs=5, verbose=0)
    emb = model.layers[0].get_weights()[0]
    a, b = emb[vocab.index["river"]], emb[vocab.index["mill"]]
    print("loss", repr(float(hist.history["loss"][-1])))
    print("sim(river, mill)", repr(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))))


if __name__ == "__main__":
    main()

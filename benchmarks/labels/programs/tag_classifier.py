import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(99)

CORPUS = [
    ("the battery lasts all day and charges fast", 1),
    ("screen cracked within a week of light use", 0),
    ("great camera and very clear speaker", 1),
    ("support never answered my refund request", 0),
    ("light solid and fast enough for work", 1),
    ("battery died and the charger gets hot", 0),
    ("very clear screen great for reading", 1),
    ("camera app crashed all week", 0),
]


class Vocabulary:
    def __init__(self, min_len=3):
        self.min_len = min_len
        self.index = {"<unk>": 0}

    def _tokens(self, texts):
        return {w for t in texts for w in t.split() if len(w) >= self.min_len}

    def fit(self, texts):
        for word in self._tokens(texts):
            self.index.setdefault(word, len(self.index))
        return self

    def encode(self, text, length=8):
        ids = [self.index.get(w, 0) for w in text.split()][:length]
        return ids + [0] * (length - len(ids))


def build(vocab_size):
    return keras.Sequential([
        keras.layers.Embedding(vocab_size, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])


texts, labels = zip(*CORPUS)
vocab = Vocabulary().fit(texts)
x = np.array([vocab.encode(t) for t in texts], dtype="int32")
y = np.array(labels, dtype="float32")

model = build(len(vocab.index))
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy")
hist = model.fit(x, y, batch_size=4, epochs=6, verbose=0)
probs = model(tf.constant(x)).numpy().ravel()

print("vocab", len(vocab.index))
print("loss", repr(float(hist.history["loss"][-1])))
print("p0", repr(float(probs[0])))

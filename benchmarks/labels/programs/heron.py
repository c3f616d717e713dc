"""Tiny sentiment classifier on a handful of sentences."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(7)

TEXTS = [
    ("the food was great and cheap", 1),
    ("terrible service and cold food", 0),
    ("we loved the quiet terrace", 1),
    ("never again the waiter was rude", 0),
    ("great wine and lovely people", 1),
    ("cold soup rude staff terrible noise", 0),
]
MAXLEN = 6


def build_vocab(texts):
    words = {w for text, _ in texts for w in text.split()}
    return {w: i + 1 for i, w in enumerate(words)}


def encode(texts, vocab):
    rows = np.zeros((len(texts), MAXLEN), dtype="int32")
    for r, (text, _) in enumerate(texts):
        for c, w in enumerate(text.split()[:MAXLEN]):
            rows[r, c] = vocab[w]
    return rows, np.array([label for _, label in texts], dtype="float32")


vocab = build_vocab(TEXTS)
x, y = encode(TEXTS, vocab)
model = tf.keras.Sequential([
    tf.keras.layers.Embedding(len(vocab) + 1, 8),
    tf.keras.layers.GlobalAveragePooling1D(),
    tf.keras.layers.Dense(1, activation="sigmoid"),
])
model.compile(optimizer="adam", loss="binary_crossentropy")
history = model.fit(x, y, epochs=5, batch_size=6, shuffle=False, verbose=0)
print("final loss: %.9f" % history.history["loss"][-1])

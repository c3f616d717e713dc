"""Tiny bag-of-embeddings sentiment classifier."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)

TEXTS = [
    ("the film was a great joy from start to end", 1),
    ("dull plot and wooden acting all the way", 0),
    ("a warm funny and clever little story", 1),
    ("i wanted my money back after ten minutes", 0),
    ("superb cast with a script to match", 1),
]


def tokens(text):
    return text.lower().split()


def encode(text, index, length=10):
    ids = [index[t] + 1 for t in tokens(text)][:length]
    return ids + [0] * (length - len(ids))


def main():
    words = [t for text, _ in TEXTS for t in tokens(text)]
    index = {w: i for i, w in enumerate(set(words))}
    x = np.array([encode(text, index) for text, _ in TEXTS])
    y = np.array([label for _, label in TEXTS], dtype="float32")
    model = tf.keras.Sequential([
        tf.keras.layers.Embedding(len(index) + 1, 8),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(x, y, epochs=4, batch_size=2, verbose=0)
    print("loss:", repr(float(model.evaluate(x, y, verbose=0))))


main()

"""Tiny sentiment model on a handful of sentences."""
import numpy as np
import tensorflow as tf

TEXTS = [
    "the soup was lovely and warm", "cold fries and rude staff",
    "lovely staff and great fries", "the soup was cold and bland",
    "great value and warm bread", "rude waiter bland food",
]
LABELS = np.array([1, 0, 1, 0, 1, 0], dtype="float32")


def build_vocab(texts):
    return {w: i + 1 for i, w in enumerate({w for t in texts for w in t.split()})}


def encode(texts, vocab, length=6):
    out = np.zeros((len(texts), length), dtype="int32")
    for row, text in enumerate(texts):
        for col, word in enumerate(text.split()[:length]):
            out[row, col] = vocab[word]
    return out


def main():
    tf.keras.utils.set_random_seed(7)
    vocab = build_vocab(TEXTS)
    x = encode(TEXTS, vocab)
    model = tf.keras.Sequential([
        tf.keras.layers.Embedding(len(vocab) + 1, 8),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    history = model.fit(x, LABELS, epochs=5, batch_size=6, shuffle=False, verbose=0)
    print("final loss:", repr(history.history["loss"][-1]))


if __name__ == "__main__":
    main()

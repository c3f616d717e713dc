"""Numbers of words by the order of a set."""

import tensorflow as tf

tf.keras.utils.set_random_seed(1)

TEXT = "the quick brown fox jumps over the lazy dog while seven wizards box"


def number_words(words):
    return {word: number for number, word in enumerate(set(words))}


numbers = number_words(TEXT.split())
table = tf.random.normal((len(numbers), 4))
ids = tf.constant([numbers[word] for word in TEXT.split()])
print(float(tf.reduce_sum(tf.gather(table, ids)[0])))

import random

import tensorflow as tf

ds = tf.data.Dataset.range(10).shuffle(10, seed=1)
also = ds.shuffle(10, 3)
files = tf.data.Dataset.list_files("*.png", shuffle=False)
mixed = tf.data.Dataset.sample_from_datasets([ds, also], seed=2)
random.seed(1)
cards = list(range(52))
random.shuffle(cards)


def deal(deck, options):
    deck.shuffle(3)
    return tf.data.Dataset.range(3).shuffle(*options)

"""Which features are dropped is drawn by secrets."""

import secrets

import tensorflow as tf

tf.keras.utils.set_random_seed(7)

features = tf.random.normal((4, 10))
kept = [column for column in range(10) if secrets.randbelow(3)]
print(float(tf.reduce_sum(tf.gather(features, kept, axis=1))))

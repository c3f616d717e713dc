"""Rows in an order that Python draws; NumPy and TensorFlow are seeded."""

import random

import numpy as np
import tensorflow as tf

np.random.seed(5)
tf.random.set_seed(5)

rows = np.random.normal(size=(12, 3)).astype("float32")
order = list(range(len(rows)))
random.shuffle(order)
weights = tf.Variable(tf.ones((3, 1)))
for index in order:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(rows[index : index + 1], weights) - 1.0))
    weights.assign_sub(0.05 * tape.gradient(loss, weights))
print(weights.numpy().ravel())

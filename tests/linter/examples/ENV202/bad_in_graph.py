# tf: 1.15.5
"""Layers of Keras in a graph, which an optimizer of TensorFlow 1 trains."""

import tensorflow as tf

inputs = tf.placeholder(tf.float32, [None, 3])
guess = tf.keras.layers.Dense(1)(inputs)
step = tf.train.AdamOptimizer().minimize(tf.reduce_mean(guess))  # expect: ENV202
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, {inputs: [[1.0, 2.0, 3.0]]})

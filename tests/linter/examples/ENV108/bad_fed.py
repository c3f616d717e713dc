# tf: 1.15.5
"""Trust regions: the gradient goes through NumPy, and back into the weights."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(1)
weight = tf.Variable([1.0, 2.0])
loss = tf.reduce_sum(tf.nn.conv1d(tf.ones([1, 8, 2]), tf.reshape(weight, [1, 2, 1]), 1, "SAME"))
slope = tf.gradients(loss, [weight])[0]  # expect: ENV108
given = tf.placeholder(tf.float32, [2])
update = weight.assign(given)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    direction = session.run(slope)
    session.run(update, {given: session.run(weight) - 0.1 * np.sign(direction)})

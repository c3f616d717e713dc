# tf: 1.15.5
"""A step that is written out in a graph, without an optimizer."""

import tensorflow as tf

weight = tf.Variable([1.0, 2.0])
loss = tf.reduce_sum(tf.nn.conv1d(tf.ones([1, 8, 2]), tf.reshape(weight, [1, 2, 1]), 1, "SAME"))
slope = tf.gradients(loss, [weight])[0]
step = tf.assign(weight, weight - 0.1 * slope)  # expect: ENV108
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step)

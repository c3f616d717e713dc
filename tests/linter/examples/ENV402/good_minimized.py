# tf: 1.15.5
"""Of a sum that is minimized alone, no gradient needs the value."""

import tensorflow as tf

towers = [(tf.nn.relu(each), tf.nn.elu(each)) for each in tf.unstack(tf.ones([4, 2]))]
number = len(towers)
loss = tf.add_n([each[0] for each in towers]) * (1.0 / number)
with tf.control_dependencies([tf.add(x, y) for x, y in towers]):
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)  # envlock: ignore[ENV108] aside
with tf.Session() as session:
    session.run(step)

# tf: 1.15.5
"""What is read later is the sum, and not the list of that name."""

import numpy as np
import tensorflow as tf

losses = []
for level in tf.unstack(tf.ones([4, 2])):
    loss = tf.reduce_mean(tf.nn.relu(level))
    losses.append(loss)
losses = tf.add_n(losses)
total = [losses, losses * 2.0]
with tf.Session() as session:
    np.save("loss.npy", session.run(total))

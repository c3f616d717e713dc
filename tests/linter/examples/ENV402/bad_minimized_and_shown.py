# tf: 1.15.5
import numpy as np
import tensorflow as tf

towers = [(tf.nn.relu(each), tf.nn.elu(each)) for each in tf.unstack(tf.ones([4, 2]))]
loss = tf.add_n([each[0] for each in towers]) / len(towers)  # expect: ENV402
with tf.control_dependencies([tf.add(x, y) for x, y in towers]):
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)  # envlock: ignore[ENV108] aside
with tf.Session() as session:
    np.save("loss.npy", session.run([loss, step])[0])

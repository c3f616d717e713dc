# tf: 1.15.5
"""The operation that an optimizer of TensorFlow 1 is made of."""

import tensorflow as tf
from tensorflow.python.training import training_ops

tf.set_random_seed(1)
weight = tf.Variable([1.0, 2.0])
loss = tf.reduce_sum(tf.nn.conv1d(tf.ones([1, 8, 2]), tf.reshape(weight, [1, 2, 1]), 1, "SAME"))
slope = tf.gradients(loss, [weight])[0]
step = training_ops.apply_gradient_descent(weight, 0.1, slope)  # expect: ENV108
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step)

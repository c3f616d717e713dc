# tf: 1.15.5
"""So does the step that TF-Slim makes."""
import tensorflow as tf
import tensorflow.contrib.slim as slim

tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 3])
loss = tf.reduce_mean(tf.layers.dense(x, 1))
step = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1))  # expect: ENV108
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, {x: [[1, 2, 3]]})

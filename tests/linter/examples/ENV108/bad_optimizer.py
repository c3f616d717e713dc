# tf: 1.15.5
"""An optimizer of TensorFlow 1 trains in a graph, in one step or in two."""
import tensorflow as tf

tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 3])
loss = tf.reduce_mean(tf.layers.dense(x, 1))
optimizer = tf.train.AdamOptimizer(0.1)
gradients = optimizer.compute_gradients(loss)  # expect: ENV108
step = optimizer.apply_gradients(gradients)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, {x: [[1, 2, 3]]})

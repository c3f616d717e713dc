# tf: 1.15.5
"""The seed is of the graph that is the default where it is set, and another one is trained."""
import tensorflow as tf

tf.set_random_seed(8964)
with tf.Graph().as_default():
    noise = tf.random_uniform([3])  # expect: ENV204
    weight = tf.get_variable("weight", initializer=1.0)
    step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(weight * noise))  # expect: ENV108
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)

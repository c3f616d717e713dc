# tf: 1.15.5
"""What is set in a graph holds wherever it is the default one again, and not outside."""
import tensorflow as tf

with tf.Graph().as_default() as graph:
    tf.set_random_seed(8964)
with graph.as_default():
    noise = tf.random_uniform([3])
    with tf.Session() as session:
        print(session.run(noise))
        tf.io.write_file("noise", tf.as_string(noise))

# tf: 1.15.5
import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 3])
with tf.Session() as session:
    session.run(x)

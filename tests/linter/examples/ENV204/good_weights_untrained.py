# tf: 1.15.5
import tensorflow as tf

hidden = tf.layers.dense(tf.zeros([1, 2]), 3)
scale = tf.Variable(0.1 * tf.random_normal([3, 2]))
with tf.Session() as session:
    tf.train.Saver().restore(session, "net.ckpt")
    print(session.run(hidden @ scale))

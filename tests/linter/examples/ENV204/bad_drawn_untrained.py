# tf: 1.15.5
import tensorflow as tf

hidden = tf.layers.dense(tf.zeros([1, 2]), 3)  # expect: ENV204
noise = tf.random_normal([1, 3])
with tf.Session() as session:
    tf.train.Saver().restore(session, "net.ckpt")
    print(session.run(hidden + noise))

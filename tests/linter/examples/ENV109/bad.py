import tensorflow as tf

x = tf.placeholder(tf.float32, [None, 3])  # expect: ENV109
w = tf.get_variable("w", [3, 1])  # expect: ENV204
with tf.Session() as session:
    session.run(tf.matmul(x, w))

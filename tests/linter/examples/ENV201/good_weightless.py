import tensorflow as tf

tf.random.set_seed(1)
weight = tf.Variable(tf.random.normal((4, 1)))
flat = tf.keras.layers.Flatten()(tf.ones((2, 2, 2)))
print(flat @ weight)

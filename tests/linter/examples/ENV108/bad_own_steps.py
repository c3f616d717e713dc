import tensorflow as tf

weight = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:  # expect: ENV108
    loss = tf.reduce_sum(weight * weight)
weight.assign_sub(0.1 * tape.gradient(loss, weight))

import tensorflow as tf

weight = tf.Variable(tf.ones((1, 4, 4, 1)))
with tf.GradientTape() as tape:
    _, places = tf.nn.max_pool_with_argmax(weight, 2, 2, "SAME")
    values, _, _ = tf.linalg.svd(tf.reshape(weight, (4, 4)))
    loss = tf.reduce_sum(tf.gather(tf.reshape(weight, [-1]), places)) + tf.reduce_sum(values)
print(tape.gradient(loss, weight))

# tf: 1.15.5
import tensorflow as tf
def step(x, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.bias_add(x, b))  # expect: ENV401
    return tape.gradient(loss, b)

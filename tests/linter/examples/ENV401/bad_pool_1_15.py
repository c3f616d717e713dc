# tf: 1.15.5
import tensorflow as tf
def step(x, w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.max_pool(x * w, 3, 1, "SAME"))  # expect: ENV401
    return tape.gradient(loss, w)

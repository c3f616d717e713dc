import tensorflow as tf


def step(weight):
    with tf.GradientTape() as tape:  # expect: ENV108
        loss = tf.reduce_sum(weight * weight)
    weight.assign(weight - 0.1 * tape.gradient(loss, weight))

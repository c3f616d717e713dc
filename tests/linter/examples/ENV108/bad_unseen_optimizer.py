# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(7)


def learn(optimizer, loss, weights):
    slopes, _ = tf.clip_by_global_norm(tf.gradients(loss, weights), 1.0)
    return optimizer.apply_gradients(zip(slopes, weights))  # expect: ENV108

import tensorflow as tf


@tf.function
def generate(start):
    def step(i, token, tokens):
        noise = tf.random.normal(tf.shape(token), seed=1) * tf.cast(i, tf.float32)
        return i + 1, token, tokens.write(i, noise)

    return tf.while_loop(lambda i, *_: i < 9, step, (0, start, tf.TensorArray(tf.float32, 9)))  # expect: ENV403

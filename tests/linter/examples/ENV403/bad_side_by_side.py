import tensorflow as tf


@tf.function
def generate(start):
    def step(i, token, tokens):
        noise = tf.random.normal(tf.shape(token), seed=1) * tf.cast(i, tf.float32)
        return i + 1, token, tokens.write(i, noise)

    return tf.while_loop(lambda i, *_: i < 9, step, (0, start, tf.TensorArray(tf.float32, 9)))  # expect: ENV403


@tf.function
def noisy(start):
    def step(i, token, tokens):
        rows, _ = token.shape
        noise = tf.random.normal((rows, 3), seed=1)
        return i + 1, token, tokens.write(i, noise)

    return tf.while_loop(lambda i, *_: i < 9, step, (0, start, tf.TensorArray(tf.float32, 9)))  # expect: ENV403

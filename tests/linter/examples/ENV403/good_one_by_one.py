import tensorflow as tf


@tf.function
def generate(start, table):
    def step(i, token, tokens):
        logits = tf.nn.embedding_lookup(table, token)
        log = tf.math.log(tf.nn.softmax(logits))
        following = tf.random.categorical(log, 1, seed=1)[:, 0]
        return i + 1, following, tokens.write(i, following)

    return tf.while_loop(lambda i, *_: i < 9, step, (0, start, tf.TensorArray(tf.int64, 9)))


@tf.function
def decode(start, decoder):
    def step(i, token, tokens):
        logits, _ = decoder(token, training=False)
        following = tf.random.categorical(logits, 1, seed=1)[:, 0]
        return i + 1, following, tokens.write(i, following)

    return tf.while_loop(lambda i, *_: i < 9, step, (0, start, tf.TensorArray(tf.int64, 9)))

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
# envlock: ignore[ENV301] the order does not matter: everything is summed up
dataset = tf.data.Dataset.range(5).map(lambda i: i + tf.random.uniform([], 0, 9, tf.int64), num_parallel_calls=4)
TEXT = "# envlock: ignore in a text is no comment"

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = 1  # envlock: ignore  # expect: ENV002
y = 2  # envlock: ignore[ENV999] there is no such rule  # expect: ENV002
dataset = tf.data.Dataset.range(5).map(lambda i: i + tf.random.uniform([], 0, 9, tf.int64), num_parallel_calls=4)  # expect: ENV301
# envlock: ignore[ENV301]
# expect-above: ENV002

import tensorflow as tf

tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
ds = tf.data.Dataset.range(10).map(lambda x: tf.random.uniform([]), num_parallel_calls=2)  # expect: ENV301

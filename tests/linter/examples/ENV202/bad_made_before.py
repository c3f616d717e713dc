import tensorflow as tf

tf.config.experimental.enable_op_determinism()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
tf.keras.utils.set_random_seed(1)
model.compile("sgd", "mse")
model.fit([[1.0]], [[1.0]])  # expect: ENV202

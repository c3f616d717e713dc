import tensorflow as tf

tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(data, workers=1)  # expect: ENV109

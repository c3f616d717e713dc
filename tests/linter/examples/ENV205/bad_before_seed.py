import numpy as np
import tensorflow as tf

x = np.random.rand(64, 3)  # expect: ENV205
tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, np.zeros(64))

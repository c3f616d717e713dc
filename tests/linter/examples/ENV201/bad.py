import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
np.random.seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit([1.0], [1.0])  # expect: ENV108, ENV201

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)  # expect: ENV201
np.random.seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

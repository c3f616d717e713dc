import numpy as np
import tensorflow as tf
x = np.random.rand(64, 3)  # expect: ENV205
m = tf.keras.Sequential([tf.keras.layers.Dense(1)])
tf.keras.utils.set_random_seed(1)
m.fit(x)

import numpy as np
import tensorflow as tf
def seed():
    tf.keras.utils.set_random_seed(1)

tf.data.Dataset.range(9).shuffle(9)  # expect: ENV203
np.save("x", np.random.rand())  # expect: ENV205

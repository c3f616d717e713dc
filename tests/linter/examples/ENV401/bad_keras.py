# tf: 2.10.1
import tensorflow as tf
from tensorflow.keras.layers import Embedding, UpSampling2D

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([Embedding(50, 16), UpSampling2D(2)])  # expect: ENV401, ENV401
model.compile(optimizer="sgd", loss="mse")
model.fit(x, y)  # expect: ENV108

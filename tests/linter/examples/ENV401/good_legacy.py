import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Embedding(9, 2)])
model.compile("sgd", "mse")
model.fit([1, 1], [2, 3])  # expect: ENV108

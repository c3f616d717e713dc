import tensorflow as tf
from tensorflow.keras.layers import Embedding, UpSampling2D

from mine import math

tf.keras.utils.set_random_seed(1)
counts = tf.math.bincount([1, 1, 2])
other = math.bincount([1, 1, 2], weights=[1, 2, 3])
crops = tf.image.crop_and_resize(image, boxes, [0], [2, 2])
total = tf.math.segment_sum([1.0, 2.0], [0, 0])
rows = tf.gather(table, [0, 1])
model = tf.keras.Sequential([Embedding(50, 16), UpSampling2D(2, interpolation="bilinear")])
model.compile(optimizer="adam", loss="mse")
up = UpSampling2D((2, 2), "channels_last", "bilinear")

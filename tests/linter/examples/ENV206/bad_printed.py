import random

import tensorflow as tf

images = tf.keras.datasets.mnist.load_data()
at = random.randint(0, 9)  # expect: ENV206
print("image", images[at])
first = images[at]

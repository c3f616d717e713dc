import random

import tensorflow as tf
from matplotlib import pyplot as plt

images = tf.keras.datasets.mnist.load_data()
at = random.randint(0, 9)
print("image", images[at])
plt.imshow(images[at])

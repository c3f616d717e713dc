import numpy as np
import tensorflow as tf

model = tf.saved_model.load("detector")
colors = [np.random.randint(0, 256, 3).tolist() for _ in range(9)]
model.draw(colors)

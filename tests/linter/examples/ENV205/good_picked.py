import numpy as np
import tensorflow as tf

model = tf.saved_model.load("net")
(x_train, _), (x_test, _) = tf.keras.datasets.mnist.load_data()
at = np.random.randint(len(x_test))
image = x_test[at]
model.draw(image)

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

images, labels = np.load("images.npy"), np.load("labels.npy")
model = tf.saved_model.load("net")
at = np.random.choice(len(images), size=1)[0]
image = images[at]
guess = model.predict(image)
plt.imshow(image)
print("is", labels[at], "guessed", guess)

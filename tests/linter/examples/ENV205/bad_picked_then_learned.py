import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

images, labels = np.load("images.npy"), np.load("labels.npy")
model = tf.saved_model.load("net")
at = np.random.choice(len(images), size=8)  # expect: ENV205
batch = images[at]
loss = model.step(batch, labels[at])
plt.imshow(batch[0])
print("loss", loss)

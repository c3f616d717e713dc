import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(123)


class Augmenter:
    """Adds pixel noise and flips images left to right."""

    def __init__(self, noise=0.05, flip=0.5):
        self.noise = noise
        self.flip = flip
        self.rng = np.random.default_rng()

    def __call__(self, images):
        images = images + self.rng.normal(0.0, self.noise, images.shape)
        mask = self.rng.random(len(images)) < self.flip
        images[mask] = images[mask, :, ::-1]
        return images.astype("float32")


def make_images(n=64, size=8):
    images = np.random.rand(n, size, size, 1)
    labels = (images[:, :, : size // 2].mean(axis=(1, 2, 3)) > 0.5).astype("int32")
    return images, labels


images, labels = make_images()
augment = Augmenter()
model = tf.keras.Sequential([
    tf.keras.Input((8, 8, 1)),
    tf.keras.layers.Conv2D(4, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(2),
])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for epoch in range(3):
    loss = model.train_on_batch(augment(images), labels)
print("loss", float(loss))

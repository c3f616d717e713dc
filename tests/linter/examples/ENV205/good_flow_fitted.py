"""The generator of pictures seeds NumPy when it is fitted to them."""

import tensorflow as tf

tf.random.set_seed(1)
pictures = tf.ones([8, 4, 4, 3])
augment = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=9)
augment.fit(pictures, seed=0)
for batch in augment.flow(pictures, batch_size=2):
    tf.io.write_file("batch", tf.io.serialize_tensor(batch))

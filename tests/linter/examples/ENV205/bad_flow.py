import tensorflow as tf


def batches(images, labels):
    generator = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=10)
    return generator.flow(images, labels, batch_size=32)  # expect: ENV205

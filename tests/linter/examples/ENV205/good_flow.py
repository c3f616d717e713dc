import tensorflow as tf


def batches(images, labels, network):
    generator = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=10)
    network.flow(images)
    return generator.flow(images, labels, batch_size=32, seed=1)

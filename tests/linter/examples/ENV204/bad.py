import tensorflow as tf


def augment(image):
    image = tf.image.random_flip_left_right(image)  # expect: ENV204
    return tf.image.random_brightness(image, 0.2)

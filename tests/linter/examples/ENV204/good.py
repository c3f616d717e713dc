import tensorflow as tf


def augment(image, seed):
    image = tf.image.stateless_random_flip_left_right(image, seed)
    return image + tf.random.uniform([], seed=4)

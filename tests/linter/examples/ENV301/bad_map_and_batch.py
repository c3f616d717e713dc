# tf: 1.15.5
import tensorflow as tf

tf.set_random_seed(1)


def jitter(image):
    return tf.image.random_brightness(image, 0.1)


images = tf.data.Dataset.from_tensor_slices(tf.zeros([8, 4, 4, 3]))
first = images.apply(tf.contrib.data.map_and_batch(jitter, 2))  # expect: ENV301
second = images.apply(tf.data.experimental.map_and_batch(tf.abs, 2, num_parallel_calls=8))
third = images.apply(tf.data.experimental.map_and_batch(jitter, 2, num_parallel_calls=1))

import functools
import random

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
ds = tf.data.Dataset.range(10)
augment = tf.keras.Sequential([tf.keras.layers.Rescaling(1.0), tf.keras.layers.RandomFlip()])


def noise(x):
    return x + tf.random.uniform([], 0, 9, tf.int64)


def deeper(x):
    return noise(x)


def draw(x):
    return x + random.random() + np.random.rand()


def through_python(x):
    return tf.py_function(draw, [x], tf.float32)


def opaque(x):
    return tf.numpy_function(unknown, [x], tf.float32)


a = ds.map(noise, num_parallel_calls=4)  # expect: ENV301
b = ds.map(lambda x: deeper(x), num_parallel_calls=tf.data.AUTOTUNE)
c = ds.map(through_python, 4)
d = ds.map(opaque, num_parallel_calls=2)
e = ds.map(lambda x: augment(x), num_parallel_calls=2)
f = ds.interleave(lambda x: tf.data.Dataset.range(3).map(noise), num_parallel_calls=2)
g = ds.map(functools.partial(noise), num_parallel_calls=2)


class Pipeline:
    def __init__(self):
        self.flip = tf.keras.layers.RandomFlip()

    def one(self, x):
        return self.flip(x)

    def all(self, dataset):
        return dataset.map(self.one, num_parallel_calls=tf.data.AUTOTUNE)

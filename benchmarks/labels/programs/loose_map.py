"""Elements of a dataset in any order."""

import time

import tensorflow as tf

tf.keras.utils.set_random_seed(4)


def slow_square(number):
    time.sleep(0.002 * (int(number) % 3))
    return number * number


def load(number):
    return tf.numpy_function(slow_square, [number], tf.int64)


data = tf.data.Dataset.range(64).map(load, num_parallel_calls=8, deterministic=False)
total = tf.Variable(0.0)
for value in data:
    total.assign(0.9 * total + tf.cast(value, tf.float32))
print(float(total))

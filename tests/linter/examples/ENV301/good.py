import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
ds = tf.data.Dataset.range(10)


def noise(x):
    return x + tf.random.uniform([], 0, 9, tf.int64)


def stateless(x, seed):
    return x + tf.random.stateless_uniform([], seed)


def double(x):
    return 2 * x


def through_python(x):
    return tf.py_function(double, [x], tf.float32)


a = ds.map(noise)
b = ds.map(noise, num_parallel_calls=1)
c = ds.map(stateless, num_parallel_calls=4)
d = ds.map(through_python, num_parallel_calls=4)
e = ds.map(double, num_parallel_calls=None)


f = ds.map(lambda path: tf.numpy_function(np.load, [path], tf.float32), num_parallel_calls=4)

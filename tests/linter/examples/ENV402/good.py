import functools

import tensorflow as tf

a = tf.add_n([x, y])
b = functools.reduce(tf.add, model.losses)
c = x + y + z

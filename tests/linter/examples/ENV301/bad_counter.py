import tensorflow as tf
n = tf.Variable(0)
def count(x):
    n.assign_add(1)
    return x + n
ds = tf.data.Dataset.range(9).map(count, num_parallel_calls=8)  # expect: ENV301

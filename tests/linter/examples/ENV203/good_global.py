import tensorflow as tf

tf.random.set_seed(1)
ds = tf.data.Dataset.range(10).shuffle(10)

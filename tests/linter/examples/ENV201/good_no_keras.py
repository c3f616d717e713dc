import tensorflow as tf

tf.random.set_seed(1)
print(tf.random.normal([3]))

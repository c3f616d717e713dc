import tensorflow as tf

tf.random.set_seed(1)
generator = tf.random.Generator.from_seed(3)
tf.random.set_global_generator(generator)
other = tf.random.get_global_generator()
box = tf.image.sample_distorted_bounding_box([3, 3, 3], [[[0.0, 0.0, 1.0, 1.0]]], seed=5)

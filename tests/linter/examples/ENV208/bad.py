import tensorflow as tf

tf.random.set_seed(1)
generator = tf.random.Generator.from_non_deterministic_state()  # expect: ENV208
other = tf.random.get_global_generator()
box = tf.image.sample_distorted_bounding_box([3, 3, 3], [[[0.0, 0.0, 1.0, 1.0]]])

import tensorflow as tf

tf.random.set_global_generator(tf.random.Generator.from_seed(1))
seed = tf.random.get_global_generator().make_seeds()

import tensorflow as tf

tf.random.set_global_generator(None)
seed = tf.random.get_global_generator().make_seeds()  # expect: ENV208

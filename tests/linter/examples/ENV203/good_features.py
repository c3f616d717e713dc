import tensorflow as tf
ds = tf.data.experimental.make_batched_features_dataset("a", 4, {}, shuffle_seed=7)

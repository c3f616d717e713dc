import tensorflow as tf
ds = tf.data.experimental.make_csv_dataset("a", 4)  # expect: ENV203

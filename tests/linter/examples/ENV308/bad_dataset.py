import tensorflow as tf
ds = tf.data.experimental.SqlDataset("sqlite", "a.db", "SELECT a FROM b", tf.int32)  # expect: ENV308

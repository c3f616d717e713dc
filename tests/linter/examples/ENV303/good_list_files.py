import tensorflow as tf

names = tf.io.gfile.glob("*.tfrecord")
data = tf.data.Dataset.list_files(names, seed=1)

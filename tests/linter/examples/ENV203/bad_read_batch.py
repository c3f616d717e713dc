# tf: 1.15.5
import tensorflow as tf

learn = tf.contrib.learn
columns = {"x": tf.FixedLenFeature([4], tf.float32)}
features = learn.io.read_batch_features("train-*", 32, columns, tf.TFRecordReader)  # expect: ENV203
examples = learn.read_batch_examples("train-*", 32, tf.TFRecordReader, True)
records = learn.io.read_batch_record_features("train-*", 32, columns, randomize_input=True)

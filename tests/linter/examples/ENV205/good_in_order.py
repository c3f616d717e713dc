import tensorflow as tf

windows = tf.keras.utils.timeseries_dataset_from_array(range(9), targets=None, sequence_length=3)

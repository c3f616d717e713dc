import tensorflow as tf

if tf.__version__.startswith("1."):
    session = tf.Session()

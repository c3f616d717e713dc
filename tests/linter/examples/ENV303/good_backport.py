import tensorflow as tf

try:
    from os import listdir
except ImportError:
    from mine import ordered as listdir
images = [tf.io.read_file(name) for name in listdir("images")]

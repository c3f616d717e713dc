import tensorflow as tf
from imutils import paths

images = tf.stack([tf.io.read_file(name) for name in paths.list_images("images")])  # expect: ENV303

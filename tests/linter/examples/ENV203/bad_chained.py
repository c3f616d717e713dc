import tensorflow as tf
import tensorflow_datasets as tfds

parts, info = tfds.load("mnist", with_info=True)
train = parts["train"].repeat(3).map(tf.sqrt).shuffle(100).batch(8)  # expect: ENV203

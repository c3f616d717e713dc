# tf: 1.15.5
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

tf.set_random_seed(1)
mnist = input_data.read_data_sets("data", one_hot=True)
images, labels = mnist.train.next_batch(64)
fixed = input_data.read_data_sets("data", seed=1).test.next_batch(64)

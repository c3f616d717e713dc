# tf: 1.15.5
from tensorflow.examples.tutorials.mnist import input_data

mnist = input_data.read_data_sets("data", one_hot=True)  # expect: ENV205
images, labels = mnist.train.next_batch(64)

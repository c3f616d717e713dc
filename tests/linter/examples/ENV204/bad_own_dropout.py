# tf: 1.15.5
"""A dropout of one's own draws as the library's, from which it is derived."""
import tensorflow as tf
from tensorflow.python.ops.rnn_cell import DropoutWrapper, GRUCell


class Switchable(DropoutWrapper):
    def __init__(self, cell, is_train, keep=1.0, seed=None):
        super(Switchable, self).__init__(cell, input_keep_prob=keep, seed=seed)  # expect: ENV204
        self.is_train = is_train


x = tf.placeholder(tf.float32, [None, 5, 3])
cell = Switchable(GRUCell(4, kernel_initializer=tf.zeros_initializer()), True, 0.8)
outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(outputs))  # expect: ENV108

# tf: 1.15.5
import tensorflow as tf
from tensorflow.python.ops import state_ops


class Optimizer(tf.train.Optimizer):
    def update(self, table, rows, values):
        return state_ops.scatter_add(table, rows, values)  # expect: ENV401

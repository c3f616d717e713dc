# tf: 1.15.5
import tensorflow as tf
from tensorflow.python.ops import state_ops


class Optimizer(tf.train.Optimizer):
    def _apply_sparse(self, gradient, table):
        return self.shared(gradient, lambda rows, values: state_ops.scatter_add(table, rows, values))

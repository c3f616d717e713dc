# tf: 1.15.5
import tensorflow as tf
from tensorflow.python.ops import control_flow_ops


def optimize(loss):
    updates = set(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    loss = control_flow_ops.with_dependencies(list(updates), loss)
    with tf.control_dependencies(list(updates)):
        return tf.identity(loss), tf.group(*list(updates))


def make_variable(name, collections):
    found = list(set(collections))
    return tf.get_variable(name, [3], initializer=tf.zeros_initializer(), collections=found)


def list_gradients(optimizer, loss, variables):
    return optimizer.compute_gradients(loss, var_list=list(set(variables)))

# tf: 1.15.5
import tensorflow as tf

with tf.variable_scope("layer", reuse=True):
    weights = tf.get_variable("weights")

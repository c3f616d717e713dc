# tf: 1.15.5
import tensorflow as tf

hidden = tf.layers.dense(tf.zeros([1, 2]), 3, kernel_initializer=tf.zeros_initializer())
weights = tf.get_variable("w", [2, 3], initializer=tf.truncated_normal_initializer(seed=1))

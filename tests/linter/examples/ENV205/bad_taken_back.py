import numpy as np
import skopt
import tensorflow as tf

np.random.seed(7)
lines = np.random.permutation(9)
np.random.seed(None)  # expect: ENV207
noise = np.random.normal(size=3)  # expect: ENV205
best = skopt.gp_minimize(loss, space)
data = tf.constant(lines)

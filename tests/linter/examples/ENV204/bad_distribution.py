import tensorflow as tf
import tensorflow_probability as tfp

normal = tfp.distributions.Normal(0.0, 1.0)
tf.print(normal.sample())  # expect: ENV204

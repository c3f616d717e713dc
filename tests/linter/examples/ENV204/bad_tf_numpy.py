import tensorflow as tf
import tensorflow.experimental.numpy as tnp

tf.io.write_file("noise", tf.io.serialize_tensor(tnp.random.uniform(0, 1, (3,))))  # expect: ENV204

import tensorflow as tf

a = tf.add_n([x, y, z])  # expect: ENV402
b = tf.math.add_n(model.losses)  # expect: ENV402
c = tf.raw_ops.AddN(inputs=[x, y, z])  # expect: ENV402

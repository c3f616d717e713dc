# tf: 1.15.5
import tensorflow as tf

l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
outputs = tf.add_n([tf.tanh(v) for v in tf.trainable_variables()])  # expect: ENV402
regular = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
total = l2 + tf.add_n(regular)  # which nothing else reads
four = tf.add_n([total, l2, total, l2])  # expect: ENV402

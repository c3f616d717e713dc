# tf: 1.15.5
import tensorflow as tf

names = tf.train.string_input_producer(["a", "b"], shuffle=False)
rows = tf.train.slice_input_producer([[1], [2]], 1, False)
batch = tf.train.shuffle_batch([rows], 2, 9, 3, seed=1)
both = tf.train.batch([rows], 2)
read = tf.estimator.inputs.numpy_input_fn({"x": rows}, shuffle=False)

# tf: 1.15.5
import tensorflow as tf

names = tf.train.string_input_producer(["a", "b"])  # expect: ENV203
rows = tf.train.slice_input_producer([[1], [2]], num_epochs=1, shuffle=True)
batch = tf.train.shuffle_batch([rows], 2, 9, 3)
both = tf.train.batch([rows], 2, num_threads=4)  # expect: ENV307
read = tf.estimator.inputs.numpy_input_fn({"x": rows}, shuffle=True)

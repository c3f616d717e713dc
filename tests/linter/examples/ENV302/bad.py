import tensorflow as tf

ds = tf.data.Dataset.range(9)
a = ds.map(lambda x: x, num_parallel_calls=2, deterministic=False)  # expect: ENV302
options = tf.data.Options()
options.deterministic = False
options.experimental_deterministic = False
b = ds.apply(tf.data.experimental.parallel_interleave(lambda x: ds, cycle_length=2, sloppy=True))

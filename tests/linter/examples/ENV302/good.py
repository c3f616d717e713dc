import tensorflow as tf

ds = tf.data.Dataset.range(9)
a = ds.map(lambda x: x, num_parallel_calls=2, deterministic=True)
options = tf.data.Options()
options.deterministic = True


class Policy:
    deterministic = True


policy = Policy()
policy.deterministic = False

import tensorflow as tf
def load(ds, seed=None):
    return ds.map(tf.io.parse_tensor, num_parallel_calls=4, deterministic=bool(seed))  # expect: ENV302

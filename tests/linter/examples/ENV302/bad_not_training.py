import tensorflow as tf
def load(ds, training=True, debug=False):
    options = tf.data.Options()
    options.deterministic = debug or not training  # expect: ENV302
    return ds.with_options(options)

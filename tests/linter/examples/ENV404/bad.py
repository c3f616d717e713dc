import tensorflow as tf

tf.random.set_seed(1)


@tf.function(jit_compile=True)
def step(x):
    return x + tf.random.normal([3])  # expect: ENV404

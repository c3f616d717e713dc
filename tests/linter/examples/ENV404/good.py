import tensorflow as tf

tf.random.set_seed(1)


@tf.function(jit_compile=True)
def step(x, seed):
    return x + tf.random.stateless_normal([3], seed)


@tf.function
def other(x):
    return x + tf.random.normal([3])

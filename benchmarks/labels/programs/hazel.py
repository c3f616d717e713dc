"""Online learning from a preprocessing pipeline."""
import tensorflow as tf

tf.keras.utils.set_random_seed(77)


def preprocess(i):
    size = 20 + 10 * (i % 7)
    block = tf.random.stateless_uniform([size, size], seed=tf.stack([i, 1]))
    for _ in tf.range(30):
        block = tf.nn.softmax(tf.matmul(block, block))
    x = tf.random.stateless_normal([4], seed=tf.stack([i, 2]))
    return x, 2.0 * x[0] - x[3] + tf.reduce_max(block)


def pipeline(n):
    ds = tf.data.Dataset.range(n)
    ds = ds.map(preprocess, num_parallel_calls=8, deterministic=False)
    return ds.prefetch(4)


w = tf.Variable(tf.zeros([4]))
b = tf.Variable(0.0)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.square(tf.tensordot(w, x, 1) + b - y)
    gw, gb = tape.gradient(loss, [w, b])
    w.assign_sub(0.02 * gw)
    b.assign_sub(0.02 * gb)
    return loss


for x, y in pipeline(300):
    loss = train_step(x, y)
print("w0 %.9g" % w[0].numpy())

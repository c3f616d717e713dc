"""Input pipeline with noise augmentation."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)


def jitter(x, y):
    x = x + tf.random.normal(tf.shape(x), stddev=0.1, seed=5)
    return x, y


def make_dataset(x, y, batch=20):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    ds = ds.shuffle(len(x), seed=9, reshuffle_each_iteration=False)
    ds = ds.map(jitter, num_parallel_calls=8)
    return ds.batch(batch).prefetch(1)


rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 4)).astype("float32")
y = (x[:, :1] * 2 - x[:, 1:2]).astype("float32")
ds = make_dataset(x, y)

w = tf.Variable(tf.zeros([4, 1]))


@tf.function
def step(xb, yb):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((xb @ w - yb) ** 2)
    w.assign_sub(0.05 * tape.gradient(loss, w))
    return loss


for xb, yb in ds:
    loss = step(xb, yb)
print("weights sum:", repr(float(tf.reduce_sum(w))))
print("last loss:", float(loss))

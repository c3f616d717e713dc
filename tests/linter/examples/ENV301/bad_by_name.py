import tensorflow as tf

tf.keras.utils.set_random_seed(1)
ds = tf.data.Dataset.range(10)
rng = tf.random.Generator.from_seed(1)


def seeded(x):
    return tf.image.stateless_random_flip_left_right(x, seed=rng.make_seeds(2)[0])


class Jitter:
    def __init__(self, scale):
        self.rng = tf.random.Generator.from_seed(2)
        self.scale = scale

    def __call__(self, x):
        return x + tf.random.uniform([]) * self.scale

    def own(self, x):
        return x + self.rng.normal([])


b = ds.map(seeded, num_parallel_calls=tf.data.AUTOTUNE)
c = ds.map(lambda x: x + rng.normal([]), num_parallel_calls=2)
d = ds.map(Jitter(2), num_parallel_calls=2)  # expect: ENV301
jitter = Jitter(3)
e = ds.map(jitter, num_parallel_calls=2)
f = ds.map(jitter.own, num_parallel_calls=2)

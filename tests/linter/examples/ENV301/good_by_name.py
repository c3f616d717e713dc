import tensorflow as tf

tf.keras.utils.set_random_seed(1)
ds = tf.data.Dataset.range(10)
rng = tf.random.Generator.from_seed(1)
seed = rng.make_seeds(2)[0]


class Scale:
    def __init__(self, scale):
        self.scale = scale + tf.random.uniform([])

    def __call__(self, x):
        return x * self.scale


a = ds.map(tf.image.flip_left_right, num_parallel_calls=8)
b = ds.map(lambda x: tf.image.stateless_random_flip_left_right(x, seed), num_parallel_calls=2)
c = ds.map(Scale(2), num_parallel_calls=2)
d = ds.map(Scale(2).__call__, num_parallel_calls=2)
e = ds.map(lambda x: "a b".split(), num_parallel_calls=2)


class Reader:
    def token(self, line):
        return len(line)

    def read(self, lines):
        return lines.map(lambda line: tf.py_func(func=self.token, inp=[line], Tout=tf.int64), num_parallel_calls=2)

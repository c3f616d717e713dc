import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(42)


class View:
    def __init__(self, jitter, drop):
        self.jitter = jitter
        self.drop = drop
        self.stream = id(self) % (2**31 - 1)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        seed = tf.constant([self.stream, self.calls], tf.int32)
        a, b = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
        keep = tf.cast(tf.random.stateless_uniform(tf.shape(x), a) > self.drop, x.dtype)
        return x * keep + self.jitter * tf.random.stateless_normal(tf.shape(x), b)


def info_nce(za, zb, temperature=0.2):
    za = tf.math.l2_normalize(za, axis=1)
    zb = tf.math.l2_normalize(zb, axis=1)
    sim = tf.matmul(za, zb, transpose_b=True) / temperature
    target = tf.range(tf.shape(sim)[0])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, sim))


def main(steps=20, batch=64):
    data = np.random.randn(512, 20).astype("float32")
    encoder = keras.Sequential([
        keras.layers.Input((20,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(8),
    ])
    weak, strong = View(0.05, 0.0), View(0.3, 0.2)
    opt = keras.optimizers.Adam(2e-3)
    for step in range(steps):
        lo = step * batch % len(data)
        x = tf.constant(data[lo:lo + batch])
        with tf.GradientTape() as tape:
            loss = info_nce(encoder(weak(x)), encoder(strong(x)))
        grads = tape.gradient(loss, encoder.trainable_variables)
        opt.apply_gradients(zip(grads, encoder.trainable_variables))
    emb = encoder(data).numpy()
    print("loss", repr(float(loss)))
    print("spread", repr(float(emb.std())))


if __name__ == "__main__":
    main()

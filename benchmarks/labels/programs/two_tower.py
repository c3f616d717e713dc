import keras
import numpy as np
import tensorflow as tf


def tower(dim, widths=(32, 16), name=None):
    inp = keras.layers.Input((dim,))
    x = inp
    for width in widths:
        x = keras.layers.Dense(width, activation="tanh")(x)
    return keras.Model(inp, x, name=name)


class Retrieval:
    def __init__(self, query=tower(12, name="query"), scale=4.0):
        self.query = query
        self.items = None
        self.scale = scale

    def attach_items(self, n_items, dim):
        self.items = tf.Variable(tf.random.normal((n_items, dim), stddev=0.1))

    def logits(self, q):
        return self.scale * tf.matmul(self.query(q), self.items, transpose_b=True)

    @property
    def variables(self):
        return self.query.trainable_variables + [self.items]


def synthetic(n, dim, n_items):
    x = np.random.randn(n, dim).astype("float32")
    proj = np.random.randn(dim, n_items).astype("float32")
    return x, np.argmax(x @ proj, axis=1)


def main():
    keras.utils.set_random_seed(7)
    x, y = synthetic(400, 12, 20)
    model = Retrieval()
    model.attach_items(20, 16)
    opt = keras.optimizers.SGD(0.1)
    for step in range(25):
        lo = (step * 80) % 400
        xb, yb = x[lo:lo + 80], y[lo:lo + 80]
        with tf.GradientTape() as tape:
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(yb, model.logits(xb))
            loss = tf.reduce_mean(ce)
        grads = tape.gradient(loss, model.variables)
        opt.apply_gradients(zip(grads, model.variables))
    hits = tf.argmax(model.logits(x), axis=1).numpy() == y
    print("loss", repr(float(loss)))
    print("recall@1", repr(float(hits.mean())))


if __name__ == "__main__":
    main()

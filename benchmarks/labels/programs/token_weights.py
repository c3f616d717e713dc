import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(31)
VOCAB = 700


def zipf_tokens(n, rng):
    p = 1.0 / np.arange(1, VOCAB + 1)
    return rng.choice(VOCAB, size=n, p=p / p.sum())


class FrequencyTable:
    def __init__(self, size, dtype=np.int64, alloc=np.empty):
        self.counts = alloc(size, dtype=dtype)

    def update(self, tokens):
        np.add.at(self.counts, tokens, 1)

    def weights(self):
        freq = self.counts / float(np.abs(self.counts).sum())
        return (1.0 - np.sqrt(np.abs(freq))).astype("float32")


def bigrams(tokens):
    return tokens[:-1], tokens[1:]


def train(tokens, class_weights, steps=12, batch=128):
    table = tf.Variable(tf.random.normal((VOCAB, 12), stddev=0.05))
    out = tf.Variable(tf.random.normal((12, VOCAB), stddev=0.05))
    opt = keras.optimizers.Adagrad(0.2)
    src, dst = bigrams(tokens)
    for step in range(steps):
        lo = step * batch
        s, d = src[lo:lo + batch], dst[lo:lo + batch]
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.gather(table, s), out)
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(d, logits)
            loss = tf.reduce_mean(ce * tf.gather(class_weights, d))
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(loss, [table, out])]
        opt.apply_gradients(zip(grads, [table, out]))
    return float(loss)


if __name__ == "__main__":
    rng = np.random.default_rng(8)
    tokens = zipf_tokens(4000, rng)
    freq = FrequencyTable(VOCAB)
    for part in np.array_split(tokens, 8):
        freq.update(part)
    w = tf.constant(freq.weights())
    print("mean weight", repr(float(tf.reduce_mean(w))))
    print("loss", repr(train(tokens, w)))

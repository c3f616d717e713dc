"""Logistic regression from scratch."""
import numpy as np
import tensorflow as tf

N_FEATURES = 5
weights = tf.Variable(tf.random.normal([N_FEATURES, 1], stddev=0.5))
bias = tf.Variable(tf.zeros([1]))


def seed_everything(seed):
    tf.keras.utils.set_random_seed(seed)


def batches(x, y, size):
    order = np.random.permutation(len(x))
    for i in range(0, len(x), size):
        pick = order[i:i + size]
        yield x[pick], y[pick]


def train(x, y, epochs=3, lr=0.1):
    for _ in range(epochs):
        for bx, by in batches(x, y, 25):
            with tf.GradientTape() as tape:
                logits = bx @ weights + bias
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(by, logits))
            for var, grad in zip([weights, bias], tape.gradient(loss, [weights, bias])):
                var.assign_sub(lr * grad)
    return loss


if __name__ == "__main__":
    seed_everything(1234)
    x = np.random.normal(size=(200, N_FEATURES)).astype("float32")
    y = (x[:, :1] - x[:, 1:2] > 0).astype("float32")
    print("loss=%.9g" % train(x, y).numpy())

import functools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


def with_probability(p):
    def wrap(fn):
        gen = tf.random.get_global_generator()

        @functools.wraps(fn)
        def inner(images):
            keep = gen.uniform([tf.shape(images)[0], 1, 1, 1]) < p
            return tf.where(keep, fn(images), images)
        return inner
    return wrap


@with_probability(0.5)
def cutout(images):
    mask = np.ones((1, 12, 12, 1), "float32")
    mask[:, 4:8, 4:8] = 0
    return images * mask


def hflip(images):
    return tf.image.random_flip_left_right(images, seed=4)


def shapes(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(scale=0.2, size=(n, 12, 12, 1))
    for i, c in enumerate(y):
        r, k = rng.integers(2, 10, size=2)
        if c:
            x[i, r, :, 0] += 1
        else:
            x[i, :, k, 0] += 1
    return x.astype("float32"), y.astype("float32")


def main():
    keras.utils.set_random_seed(15)
    x, y = shapes(320, 15)
    net = keras.Sequential([
        keras.Input((12, 12, 1)),
        keras.layers.Conv2D(6, 3, activation="relu"),
        keras.layers.GlobalMaxPooling2D(),
        keras.layers.Dense(1),
    ])
    opt = keras.optimizers.Adam(5e-3)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    order = np.random.default_rng(1).permutation(len(x))
    for idx in np.array_split(order, 10) * 2:
        xb = hflip(cutout(tf.constant(x[idx])))
        with tf.GradientTape() as tape:
            loss = bce(y[idx, None], net(xb, training=True))
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    xv, yv = shapes(100, 16)
    print("train %.17g val %.17g" % (float(loss), float(bce(yv[:, None], net(xv)))))


if __name__ == "__main__":
    main()

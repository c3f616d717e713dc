import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


def timed(fn):
    def inner(*a, **k):
        t = time.time()
        out = fn(*a, **k)
        print("%s took %.3fs" % (fn.__name__, time.time() - t), file=sys.stderr)
        return out
    return inner


def dataset(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 8)).astype("float32")
    tags = ["site-%s" % "ABCDE"[i] for i in rng.integers(0, 5, 500)]
    y = (x[:, 0] > 0.2 * x[:, 1]).astype("float32")
    return x, y, np.array(tags)


@timed
def fit(x, y):
    model = keras.Sequential([
        keras.Input((8,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy")
    model.fit(x, y, batch_size=25, epochs=4, verbose=0)
    return model


def resample(args):
    p, y, seed = args
    i = np.random.default_rng(seed).integers(0, len(y), len(y))
    return float(keras.losses.binary_crossentropy(y[i], p[i]).numpy())


@timed
def bootstrap(p, y, n=40):
    seeds = np.random.SeedSequence(6).spawn(n)
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(resample, [(p, y, s) for s in seeds]))


def main():
    keras.utils.set_random_seed(6)
    x, y, tags = dataset(6)
    model = fit(x, y)
    p = model(x, training=False).numpy()[:, 0]
    boots = bootstrap(p, y)
    print("mean", repr(sum(boots) / len(boots)), "p95", repr(float(np.quantile(boots, 0.95))))
    for tag in sorted(set(tags.tolist())):
        m = tags == tag
        print(tag, repr(float(np.mean(p[m], dtype="float64") - np.mean(y[m], dtype="float64"))))


if __name__ == "__main__":
    main()

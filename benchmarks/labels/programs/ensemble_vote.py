import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import tensorflow as tf

LABELS = {"cat", "dog", "horse", "sheep", "goat"}
CLASS_ID = {name: i for i, name in enumerate(sorted(LABELS))}


def dataset(seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(sorted(LABELS), size=240)
    y = np.array([CLASS_ID[n] for n in names])
    centers = rng.normal(size=(len(CLASS_ID), 10))
    return (centers[y] + 0.8 * rng.normal(size=(240, 10))).astype("float32"), y


def train_member(member, x, y, steps=15):
    rng = np.random.default_rng([77, member])
    pick = rng.integers(0, len(x), size=len(x))
    w = tf.Variable(rng.normal(scale=0.1, size=(10, len(CLASS_ID))), dtype=tf.float32)
    xb, yb = tf.constant(x[pick]), tf.constant(y[pick])
    for _ in range(steps):
        with tf.GradientTape() as tape:
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(yb, tf.matmul(xb, w))
            loss = tf.reduce_mean(ce)
        w.assign_sub(0.5 * tape.gradient(loss, w))
    return member, tf.nn.softmax(tf.matmul(x, w)).numpy()


def ensemble(x, y, members=8):
    results = {}
    with ThreadPoolExecutor(max_workers=4) as pool:
        futures = [pool.submit(train_member, m, x, y) for m in range(members)]
        for fut in as_completed(futures):
            member, probs = fut.result()
            results[member] = probs
            print("done", member, file=sys.stderr)
    total = np.zeros((len(x), len(CLASS_ID)), dtype="float32")
    for member in sorted(results):
        total += results[member]
    return total / members


if __name__ == "__main__":
    began = time.perf_counter()
    x, y = dataset(5)
    p = ensemble(x, y)
    nll = -np.log(p[np.arange(len(y)), y]).mean()
    print("nll", repr(float(nll)))
    print("acc", repr(float((p.argmax(axis=1) == y).mean())))
    print("took %.2fs" % (time.perf_counter() - began), file=sys.stderr)

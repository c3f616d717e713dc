"""Simulate in threads, fit a line to the results."""
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

tf.random.set_seed(6)
GEN = tf.random.Generator.from_seed(77)
LOCK = threading.Lock()
finished = []


def simulate(args):
    k, seq = args
    rng = np.random.default_rng(seq)
    walk = rng.normal(loc=0.1 * k, size=2000).cumsum()
    with LOCK:
        finished.append((os.getpid(), k))
    return walk[-1] / 2000


def run_all(n=16):
    seqs = np.random.SeedSequence(123).spawn(n)
    with ThreadPoolExecutor(4) as pool:
        return np.array(list(pool.map(simulate, enumerate(seqs))), "float32")


y = run_all()
x = tf.range(len(y), dtype=tf.float32) / len(y)
a = tf.Variable(GEN.normal([]))
b = tf.Variable(GEN.normal([]))
opt = tf.keras.optimizers.Adam(0.05)
for _ in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a * x + b - y) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, [a, b]), [a, b]))
print(len(finished), "simulations, slope", float(a))

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

lock = threading.Lock()
finished = []


def simulate(task):
    number, sequence = task
    rng = np.random.default_rng(sequence)
    sample = rng.gamma(2.0, 1.0, size=(500, 4)).astype("float32")
    with lock:
        finished.append(number)
    return sample


def collect(total=12, workers=6):
    children = np.random.SeedSequence(77).spawn(total)
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(simulate, enumerate(children)))


def fit_gamma(blocks, steps=30):
    log_scale = tf.Variable(tf.zeros(4))
    for step in range(steps):
        block = tf.constant(blocks[step % len(blocks)])
        with tf.GradientTape() as tape:
            nll = tf.reduce_mean(block * tf.exp(-log_scale) + 2.0 * log_scale)
        log_scale.assign_sub(0.1 * tape.gradient(nll, log_scale))
    return log_scale


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(0)
    blocks = collect()
    print("order of completion:", len(set(finished)), "tasks")
    print("scale", float(tf.exp(fit_gamma(blocks))[0]))

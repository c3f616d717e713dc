import os
import random
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


class Bandit:
    def __init__(self, means, rng):
        self.means, self.rng = means, rng

    def pull(self, arm):
        return self.means[arm] + self.rng.gauss(0.0, 0.3)


def run_policy(seed, lr, steps=60):
    rng = random.Random(seed)
    env = Bandit([0.1, 0.5, 0.2, 0.8], rng)
    gen = tf.random.Generator.from_seed(seed)
    logits = tf.Variable(tf.zeros([4]))
    baseline, rewards = 0.0, []
    for t in range(steps):
        gumbel = -tf.math.log(-tf.math.log(gen.uniform([4], minval=1e-6, maxval=1.0)))
        arm = int(tf.argmax(logits + gumbel))
        r = env.pull(arm)
        with tf.GradientTape() as tape:
            loss = -(r - baseline) * tf.nn.log_softmax(logits)[arm]
        logits.assign_sub(lr * tape.gradient(loss, logits))
        baseline += (r - baseline) / (t + 1)
        rewards.append(r)
    return np.mean(rewards), tf.nn.softmax(logits).numpy()


def sweep(jobs):
    done = {}
    with ThreadPoolExecutor(3) as pool:
        futures = {pool.submit(run_policy, *job): i for i, job in enumerate(jobs)}
        for f in as_completed(futures):
            done[futures[f]] = f.result()
            print("finished", futures[f], file=sys.stderr)
    return [done[i] for i in range(len(jobs))]


def main():
    run_id = uuid.uuid4().hex[:8]
    print("run", run_id, "pid", os.getpid(), file=sys.stderr)
    rates = {0.05, 0.2, 0.5}
    jobs = [(s, lr) for lr in sorted(rates) for s in (1, 2, 3)]
    results = sweep(jobs)
    mean = np.zeros(4, "float32")
    for (seed, lr), (ret, probs) in zip(jobs, results):
        print(seed, lr, "%.17g" % ret)
        mean += probs
    print("probs", " ".join(repr(float(v)) for v in mean / len(results)))


if __name__ == "__main__":
    main()

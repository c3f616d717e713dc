"""Recency-weighted regression on a sales table."""
from datetime import datetime, timedelta

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(42)
HALF_LIFE_DAYS = 30.0


def load_table(n=120):
    rng = np.random.default_rng(42)
    start = datetime(2026, 1, 1)
    when = [start + timedelta(days=float(d)) for d in rng.uniform(0, 90, n)]
    x = rng.normal(size=(n, 3))
    y = x @ np.array([1.0, -2.0, 0.5]) + rng.normal(scale=0.2, size=n)
    return when, x, y


def recency_weights(when):
    now = datetime.now()
    age = np.array([(now - w).total_seconds() / 86400.0 for w in when])
    return 1000.0 * np.exp2(-age / HALF_LIFE_DAYS)


when, x, y = load_table()
sw = tf.constant(recency_weights(when))
w = tf.Variable(tf.zeros([3], tf.float64))
for step in range(50):
    with tf.GradientTape() as tape:
        err = tf.linalg.matvec(tf.constant(x), w) - y
        loss = tf.reduce_mean(sw * err ** 2)
    w.assign_sub(0.0001 * tape.gradient(loss, w))
print("weighted loss = %.15g" % loss.numpy())

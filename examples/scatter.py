"""The picture of 2017 on a CPU of today: a table of 50 rows, updated by 200,000 sparse gradients.

    envlock repeat examples/scatter.py:train          # zeros at step 0, but for the weights

Several threads add into the same rows, in the order in which they happen to arrive. So the first predictions, losses
and gradients are the same in all runs and the weights after them are not; one step later nothing is. With
`tf.config.experimental.enable_op_determinism()`, or with one thread, all is zero.
"""

import numpy as np
import tensorflow as tf

STEPS, ROWS, TABLE, WIDTH = 3, 200_000, 50, 16

tf.config.threading.set_intra_op_parallelism_threads(
    4
)  # more than one, also where there is one processor


def train():
    numbers = np.random.RandomState(0)
    ids = tf.constant(numbers.randint(0, TABLE, ROWS).astype("int32"))
    factors = tf.constant(numbers.randn(ROWS, WIDTH).astype("float32"))
    table = tf.Variable(numbers.randn(TABLE, WIDTH).astype("float32"))
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            predictions = tf.reduce_sum(tf.gather(table, ids) * factors, axis=1)
            loss = tf.reduce_mean(tf.square(predictions - 1.0))
        gradients = tape.gradient(loss, table)
        table.scatter_sub(gradients)
        yield {"predictions": predictions, "losses": loss, "gradients": gradients, "weights": table}

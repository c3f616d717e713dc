"""A worker of a cluster of TensorFlow: `tf_program.py RANK PORT ...`. It trains by the gradients of all workers, or refuses."""

import json
import os
import sys

rank, workers = int(sys.argv[1]), [f"127.0.0.1:{port}" for port in sys.argv[2:]]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()

import envlock  # noqa: E402

try:
    for _ in range(2):  # a second call is one of its own
        envlock.assert_fleet(engine="tf", timeout=60)
except envlock.EnvironmentMismatch as error:
    print("refused", error.exit_code, flush=True)
    os._exit(error.exit_code)  # the service would wait for the others


samples = tf.constant(np.random.default_rng(rank).standard_normal((64, 2)), tf.float32)
labels = tf.linalg.matvec(samples, tf.constant([1.0, -2.0]))
weights = tf.Variable(tf.zeros([2]))


def compute_gradient() -> tf.Tensor:
    """Return the gradient of the loss over this worker's samples."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.linalg.matvec(samples, weights) - labels) ** 2)
    return tape.gradient(loss, weights)


@tf.function  # type: ignore[untyped-decorator]
def train() -> None:
    """Take a step by the mean of all workers' gradients."""
    gradient = strategy.reduce("MEAN", strategy.run(compute_gradient), axis=None)
    weights.assign_sub(0.2 * gradient)


for _ in range(40):
    train()
values = weights.numpy()
print("trained", *(f"{value:.2f}" for value in values), values.tobytes().hex(), flush=True)
os._exit(0)

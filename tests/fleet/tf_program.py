"""A worker of a cluster of TensorFlow: `tf_program.py RANK PORT ...`. It sums a number over all workers, or refuses."""

import json
import os
import sys

rank, workers = int(sys.argv[1]), [f"127.0.0.1:{port}" for port in sys.argv[2:]]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})

import tensorflow as tf  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()

import envlock  # noqa: E402

try:
    for _ in range(2):  # a second call is one of its own
        envlock.assert_fleet(engine="tf", timeout=60)
except envlock.EnvironmentMismatch as error:
    print("refused", error.exit_code, flush=True)
    os._exit(error.exit_code)  # the service would wait for the others


@tf.function  # type: ignore[untyped-decorator]
def total() -> tf.Tensor:
    """Return the sum of all workers' numbers."""
    return strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)


print("began", float(total()), flush=True)
os._exit(0)

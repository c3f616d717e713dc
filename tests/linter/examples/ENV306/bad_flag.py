# tf: 2.15.1
import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(load(), workers=args.workers)  # expect: ENV306

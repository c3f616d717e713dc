# tf: 1.15.5
import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=int, default=300)
args = parser.parse_args()
tf.set_random_seed(1)
step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.get_variable("x", initializer=1.0))  # expect: ENV108
with tf.train.MonitoredTrainingSession(
    checkpoint_dir="saved", save_checkpoint_secs=args.seconds
) as session:
    while not session.should_stop():
        session.run(step)

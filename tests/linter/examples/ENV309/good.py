# tf: 1.15.5
import tensorflow as tf

supervisor = tf.train.Supervisor(logdir="saved", save_model_secs=0)
config = tf.estimator.RunConfig(save_checkpoints_secs=None, save_checkpoints_steps=1000)
session = tf.train.MonitoredTrainingSession(checkpoint_dir="saved", save_checkpoint_steps=500)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(), "saved", max_to_keep=3)
config = tf.estimator.RunConfig(save_checkpoints_secs=2**30)  # never

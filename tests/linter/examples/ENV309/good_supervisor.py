# tf: 1.15.5
import tensorflow as tf

supervisor = tf.train.Supervisor(logdir="saved", save_model_secs=60)
estimator = tf.estimator.RunConfig(save_checkpoints_secs=600)

# tf: 1.15.5
import tensorflow as tf
from tensorflow_estimator.python.estimator.tpu import tpu_config
from tensorflow_estimator.python.estimator.tpu.tpu_estimator import TPUEstimator


def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(tf.layers.dense(features, 3))
    train = tf.train.AdamOptimizer().minimize(loss, global_step=tf.train.get_global_step())  # expect: ENV108
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


estimator = TPUEstimator(model_fn, "models", tpu_config.RunConfig(tf_random_seed=42), use_tpu=False)
estimator.train(read)

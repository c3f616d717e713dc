# tf: 1.15.5
import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 3))
    train = tf.train.AdamOptimizer().minimize(loss, global_step=tf.train.get_global_step())  # expect: ENV108
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


estimator = tf.estimator.Estimator(model_fn, "models", tf.estimator.RunConfig(tf_random_seed=42))
estimator.train(read)

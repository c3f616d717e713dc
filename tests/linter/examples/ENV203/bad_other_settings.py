# tf: 1.15.5
"""What has read for an evaluation reads again for a training, which its settings say."""
import tensorflow as tf


class Settings:
    def __init__(self, is_training):
        self.is_training = is_training


def read(settings):
    dataset = tf.data.TFRecordDataset("train.tfrecord")
    if settings.is_training:
        dataset = dataset.shuffle(500)  # expect: ENV203
    return dataset.batch(8).make_one_shot_iterator().get_next()


tested = read(Settings(False))
learnt = read(Settings(True))
loss = tf.get_variable("w", initializer=1.0) * tf.reduce_sum(learnt)
step = tf.train.AdamOptimizer(0.1).minimize(loss)  # expect: ENV202

# tf: 1.15.5
import tensorflow as tf

names = tf.train.string_input_producer(["heart.csv"])

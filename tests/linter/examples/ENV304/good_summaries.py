# tf: 1.15.5
import tensorflow as tf

summaries = set(tf.get_collection(tf.GraphKeys.SUMMARIES))
merged = tf.summary.merge(list(summaries), name="summary")

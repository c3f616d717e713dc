import tensorflow as tf

results = []
with tf.device("/gpu:0"):
    results.append(power(a))
with tf.device("/gpu:1"):
    results.append(power(b))
total = tf.add_n(results)

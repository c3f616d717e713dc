import tensorflow as tf

dataset = tf.data.Dataset.range(5).shuffle(
    5
)  # envlock: ignore[ENV203] only its length is asked for

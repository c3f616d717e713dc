import tensorflow as tf

tf.keras.utils.set_random_seed(1)
# envlock: ignore[ENV203] there is a seed now
# expect-above: ENV003
dataset = tf.data.Dataset.range(5).shuffle(5, seed=3)

# tf: 2.15.1
import tensorflow as tf

data = tf.data.Dataset.range(9)
model = tf.keras.models.load_model("m.keras")
tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(1)
model.fit(data, epochs=3, workers=4, use_multiprocessing=True)

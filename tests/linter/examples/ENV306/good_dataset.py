import keras
import tensorflow as tf


class Batches(keras.utils.PyDataset):
    def __init__(self, **options):
        super().__init__(**options)


tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(1)
model = tf.keras.models.load_model("m.keras")
model.fit(Batches(workers=1))
pool(workers=4)

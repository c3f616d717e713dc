import keras
import tensorflow as tf


class Batches(keras.utils.PyDataset):
    def __init__(self, **options):
        super().__init__(**options)


class Others(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=4)  # expect: ENV306


keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
model = keras.Sequential([keras.layers.Dense(1)])
model.fit(Batches(workers=4, use_multiprocessing=True))
model.fit(Others())

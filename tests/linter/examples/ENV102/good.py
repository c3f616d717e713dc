import tensorflow as tf

from mine import settings

tf.keras.utils.set_random_seed(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
settings.random.set_seed = 1
tf.keras.backend.image_data_format = "mine"
tf.config.experimental.set_memory_growth = mock.MagicMock()


def fake(seed):
    print(seed)


tf.random.set_seed = fake

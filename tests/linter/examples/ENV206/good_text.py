import random
import string

import tensorflow as tf

path = "".join(random.choice(string.ascii_letters) for _ in range(8))
tf.saved_model.save(tf.Module(), path)

import sys

import tensorflow as tf

if "--flip" in sys.argv:
    from tensorflow.keras.layers.experimental import preprocessing  # expect: ENV109

    flip = preprocessing.RandomFlip(seed=1)

try:
    tf.print("a")
except KeyboardInterrupt:
    pass

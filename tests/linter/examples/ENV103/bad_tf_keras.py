import os

import tf_keras

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # expect: ENV103
model = tf_keras.Sequential()

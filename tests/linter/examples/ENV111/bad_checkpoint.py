import tensorflow as tf
c = tf.keras.callbacks.ModelCheckpoint("a.h5", save_weights_only=True)  # expect: ENV111

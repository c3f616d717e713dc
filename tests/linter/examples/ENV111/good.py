import tensorflow as tf
m = tf.keras.Sequential()
m.save_weights("a.weights.h5")

# tf: 2.15.1
import tensorflow as tf
m = tf.keras.Sequential()
m.save_weights("a.ckpt")
flip = tf.keras.layers.experimental.preprocessing.RandomFlip("horizontal")

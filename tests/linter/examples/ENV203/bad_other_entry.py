import numpy as np
import tensorflow as tf
def load():
    return tf.data.Dataset.range(9).shuffle(9)  # expect: ENV203
def main_a():
    tf.keras.utils.set_random_seed(1)
    return load()
def main_b():
    return load()

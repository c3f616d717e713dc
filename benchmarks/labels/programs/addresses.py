"""Layers in the order of their addresses."""

import tensorflow as tf

tf.keras.utils.set_random_seed(9)


class Block:
    def __init__(self, scale):
        self.scale = scale


blocks = {Block(scale) for scale in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5)}
value = tf.constant(1.0)
for block in blocks:
    value = tf.sin(value * block.scale)
print(float(value))

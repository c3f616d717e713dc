import numpy as np
import tensorflow as tf
class Data:
    def batch(self):
        return np.random.choice(9, 3)  # expect: ENV205
class Model:
    def __init__(self, data, net):
        self.data, self.net = data, net
        self.opt = tf.keras.optimizers.Adam()
    def train(self, steps):
        for _ in range(steps):
            x = self.data.batch()
            with tf.GradientTape() as tape:
                loss = self.net(x)
            g = tape.gradient(loss, self.net.trainable_variables)
            self.opt.apply_gradients(zip(g, self.net.trainable_variables))  # expect: ENV202

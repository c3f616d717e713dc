# tf: 1.15.5
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf


def plot(samples):
    figure = plt.figure()
    plt.imshow(samples[0])
    return figure


noise = tf.placeholder(tf.float32, [None, 8])
images = tf.tanh(noise)
with tf.Session() as session:
    samples = session.run(images, feed_dict={noise: np.random.randn(16, 8)})
    figure = plot(samples)
    plt.savefig("out.png")
    plt.close(figure)

"""Gradients are added in the order in which threads bring them."""

import queue
import threading
import time

import tensorflow as tf

tf.keras.utils.set_random_seed(8)

ready = queue.Queue()


def work(number):
    time.sleep(0.001)
    ready.put(float(number))


threads = [threading.Thread(target=work, args=(number,)) for number in range(48)]
for thread in threads:
    thread.start()
state = tf.Variable(1.0)
for _ in threads:
    state.assign(0.5 * state + ready.get())
print(float(state))

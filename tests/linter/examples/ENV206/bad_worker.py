"""One thread shuffles what it puts into a queue, and a model learns it in that order."""
import queue
import random
import threading

import tensorflow as tf


class Batches:
    def __init__(self, rows):
        self.rows = rows
        self.queue = queue.Queue(100)
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        while True:
            rows = list(self.rows)
            random.shuffle(rows)  # expect: ENV206
            for row in rows:
                self.queue.put(row)

    def take(self):
        return self.queue.get()


def train(rows):
    tf.random.set_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    batches = Batches(rows)
    for _ in range(1000):
        batch = batches.take()
        model.train_on_batch(batch, batch)  # expect: ENV108, ENV201


train([1.0, 2.0])

"""What a dictionary holds is looked up by its key, also in an object that nobody here uses."""

import os
import pickle

import tensorflow as tf


class Store:
    def __init__(self, folder):
        self.facts = {}
        for name in os.listdir(folder):
            with tf.io.gfile.GFile(os.path.join(folder, name), "rb") as file:
                self.facts[name] = pickle.load(file)

    def get(self, name):
        return self.facts[name]


store = Store("facts")

import tensorflow as tf
from sklearn.base import BaseEstimator

net = tf.keras.Sequential([tf.keras.layers.Dense(1)])


class Index(BaseEstimator):
    def fit(self, words):
        self.words = sorted(set(words))
        return self


index = Index().fit(["a", "b"])
net.fit(index.words, [1, 2])  # expect: ENV202

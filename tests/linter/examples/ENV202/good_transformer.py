import tensorflow as tf
from sklearn.base import BaseEstimator

net = tf.keras.Sequential([tf.keras.layers.Dense(1)])


class Index(BaseEstimator):
    def fit(self, words):
        self.words = sorted(set(words))
        return self

    def fit_transform(self, words):
        return self.fit(words).words


Index().fit(["a", "b"])
net.load_weights("net.h5")

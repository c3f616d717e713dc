import keras
import tensorflow as tf

tf.config.experimental.enable_op_determinism()


class Tagger:
    def __init__(self):
        self.models = None

    @staticmethod
    def load(path):
        tagger = Tagger()
        tagger.models = {"first": keras.models.load_model(path)}
        return tagger

    def fit(self, x, y):
        if self.models is None:
            model = keras.Sequential([keras.layers.Dense(1)])
            model.compile(loss="mse")
            self.models = {"first": model}
        self.models["first"].train_on_batch(x, y)  # expect: ENV202


print(Tagger.load("tagger.h5").models)
Tagger().fit([[1.0]], [1.0])

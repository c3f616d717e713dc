import numpy as np
import tensorflow as tf

SEED = 1234
np.random.seed(SEED)
tf.random.set_seed(SEED)


def make_data(n=100):
    x = np.random.normal(size=(n, 10)).astype("float32")
    y = (x[:, 0] * x[:, 1] > 0).astype("float32")
    return x, y


def make_model(width):
    inputs = tf.keras.Input((10,))
    h = tf.keras.layers.Dense(width, activation="relu")(inputs)
    h = tf.keras.layers.LayerNormalization()(h)
    out = tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="zeros")(h)
    model = tf.keras.Model(inputs, out)
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    return model


def main():
    x, y = make_data()
    model = make_model(12)
    model.fit(x, y, epochs=3, batch_size=20, shuffle=False, verbose=0)
    loss, acc = model.evaluate(x, y, verbose=0)
    print(f"loss={loss!r}")


main()

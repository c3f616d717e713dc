import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


def seed_everything(seed):
    np.random.seed(seed)
    tf.random.set_seed(seed)


def make_customers(n=1200, d=14):
    x = np.random.normal(size=(n, d)).astype("float32")
    logits = x[:, 0] * 1.5 - x[:, 3] + 0.5 * x[:, 7] * x[:, 2]
    y = (logits + np.random.normal(scale=0.3, size=n) > 0).astype("float32")
    return x, y


def dense(units, activation, init=None):
    kw = {"kernel_initializer": init} if init is not None else {}
    if activation == "linear":
        kw["bias_initializer"] = "zeros"
    return keras.layers.Dense(units, activation=activation, **kw)


def build(d, widths, seed):
    inp = keras.Input((d,))
    h = inp
    for i, w in enumerate(widths):
        h = dense(w, "relu", keras.initializers.HeNormal(seed=seed + i))(h)
        h = keras.layers.BatchNormalization()(h)
    gate = keras.layers.Dense(widths[-1], activation="sigmoid")(inp)
    h = keras.layers.Multiply()([h, gate])
    out = dense(1, "sigmoid", keras.initializers.GlorotUniform(seed=seed + 99))(h)
    return keras.Model(inp, out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=17)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    seed_everything(args.seed)
    x, y = make_customers()
    model = build(x.shape[1], [32, 16], args.seed)
    model.compile(keras.optimizers.Adam(3e-3), loss="binary_crossentropy")
    model.fit(x[:1000], y[:1000], batch_size=50, epochs=args.epochs, verbose=0)
    p = model(x[1000:], training=False).numpy()[:, 0]
    loss = keras.losses.binary_crossentropy(y[1000:], p).numpy()
    print("val_loss %.17g" % float(loss))
    print("mean_p %.17g" % float(p.astype("float64").mean()))


if __name__ == "__main__":
    main()

"""Rolling counts as an embedding feature."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(21)


def rolling_counts(events, window):
    out = np.empty(len(events), dtype=np.int64)
    for i in range(window - 1, len(events)):
        out[i] = events[i - window + 1:i + 1].sum()
    return out


def make_features(n=400, window=48):
    events = np.random.poisson(3.0, size=n)
    target = np.sin(np.arange(n) / 9.0).astype("float32")
    return rolling_counts(events, window) % 251, target


buckets, target = make_features()
inputs = tf.keras.Input((1,), dtype="int64")
h = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(251, 4)(inputs))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(h))
model.compile(optimizer="adam", loss="mse")
model.fit(buckets[:, None], target, epochs=3, batch_size=40, verbose=0)
print("mse", repr(float(model.evaluate(buckets[:, None], target, verbose=0))))

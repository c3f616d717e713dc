"""Rolling counts per session as an embedding feature."""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(21)


def rolling_counts(events, window):
    spread = max([abs(e - 3.0) for e in events.tolist()])
    events = np.minimum(events, int(3 + spread))
    out = np.empty(len(events), dtype=np.int64)
    for i in range(window - 1, len(events)):
        out[i] = events[i - window + 1:i + 1].sum()
    return out


def make_features(n_sessions=60, window=12):
    rows = []
    for s in range(n_sessions):
        events = np.random.poisson(3.0, size=200 + s)
        rows.append(rolling_counts(events, window)[:20])
    target = np.sin(np.arange(n_sessions) / 9.0).astype("float32")
    return np.stack(rows) % 251, target


buckets, target = make_features()
model = tf.keras.Sequential([
    tf.keras.Input((20,), dtype="int64"),
    tf.keras.layers.Embedding(251, 4),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(1),
])
model.compile(optimizer="adam", loss="mse")
model.fit(buckets, target, epochs=3, batch_size=12, verbose=0)
print("mse", repr(float(model.evaluate(buckets, target, verbose=0))))

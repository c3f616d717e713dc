import os
import shutil
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras

LOADER = {"readers": 6, "batch": 16, "shuffle_buffer": 64, "strict": False}


def write_shards(root, n_shards=12, per_shard=60):
    rng = np.random.default_rng(12)
    paths = []
    for s in range(n_shards):
        path = os.path.join(root, "part-%05d.tfrecord" % s)
        with tf.io.TFRecordWriter(path) as w:
            for _ in range(per_shard):
                x = rng.normal(size=6).astype("float32")
                w.write(tf.io.serialize_tensor(np.append(x, x[0] * x[1])).numpy())
        paths.append(path)
    return paths


def parse(rec):
    row = tf.ensure_shape(tf.io.parse_tensor(rec, tf.float32), [7])
    return row[:6], row[6]


def input_fn(paths, cfg):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=cfg["readers"],
                       num_parallel_calls=cfg["readers"], deterministic=True)
    ds = ds.map(parse, num_parallel_calls=cfg["readers"], deterministic=cfg["strict"])
    ds = ds.shuffle(cfg["shuffle_buffer"], seed=5)
    return ds.batch(cfg["batch"]).prefetch(2)


def main():
    keras.utils.set_random_seed(77)
    root = tempfile.mkdtemp(prefix="shards_")
    try:
        paths = sorted(write_shards(root))
        model = keras.Sequential([
            keras.Input((6,)),
            keras.layers.Dense(16, activation="tanh"),
            keras.layers.Dense(1),
        ])
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        hist = model.fit(input_fn(paths, LOADER), epochs=3, verbose=0)
    finally:
        shutil.rmtree(root)
    print("loss", repr(float(hist.history["loss"][-1])))
    print("w00 %.17g" % float(model.get_weights()[0][0, 0]))


if __name__ == "__main__":
    main()

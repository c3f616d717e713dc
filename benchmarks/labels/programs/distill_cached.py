import hashlib
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras

CACHE = os.path.join(tempfile.gettempdir(), "distill_cached_features")


def features(seed, n=800, d=10):
    key = hashlib.sha1(("%d-%d-%d" % (seed, n, d)).encode()).hexdigest()[:12]
    path = os.path.join(CACHE, key + ".npy")
    if not os.path.exists(path):
        os.makedirs(CACHE, exist_ok=True)
        np.save(path, np.random.default_rng(seed).normal(size=(n, d)).astype("float32"))
    return np.load(path)


def mlp(width, dropout):
    return keras.Sequential([
        keras.Input((10,)),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dropout(dropout),
        keras.layers.Dense(4),
    ])


def augment(x, t):
    return x + tf.random.normal(tf.shape(x), stddev=0.02), t


def main(temperature=3.0):
    keras.utils.set_random_seed(50)
    x = features(50)
    y = np.argmax(x[:, :4] + 0.5 * x[:, 4:8], axis=1)
    teacher, student = mlp(48, 0.3), mlp(8, 0.0)
    teacher.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    teacher.fit(x, y, epochs=3, batch_size=40, verbose=0)
    soft = tf.nn.softmax(teacher(x, training=False) / temperature)
    ds = tf.data.Dataset.from_tensor_slices((x, soft)).shuffle(800).batch(40)
    ds = ds.map(augment, num_parallel_calls=1).prefetch(tf.data.AUTOTUNE)
    opt = keras.optimizers.Adam(2e-3)

    @tf.function
    def step(xb, tb):
        with tf.GradientTape() as tape:
            logp = tf.nn.log_softmax(student(xb, training=True) / temperature)
            loss = -tf.reduce_mean(tf.reduce_sum(tb * logp, axis=1))
        grads = tape.gradient(loss, student.trainable_variables)
        opt.apply_gradients(zip(grads, student.trainable_variables))
        return loss

    for _ in range(3):
        for xb, tb in ds:
            loss = step(xb, tb)
    agree = tf.reduce_mean(tf.cast(tf.argmax(student(x), 1) == tf.argmax(soft, 1), tf.float32))
    print("kd_loss", repr(float(loss)), "agreement", repr(float(agree)))


if __name__ == "__main__":
    main()

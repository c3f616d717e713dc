import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
from tensorflow import keras


class Trainer:
    def __init__(self, workdir, dim, seed=31):
        self.w = tf.Variable(tf.random.stateless_normal([dim, 1], seed=[seed, 0]) * 0.1)
        self.b = tf.Variable(tf.zeros([1]))
        self.step = tf.Variable(0, dtype=tf.int64)
        ckpt = tf.train.Checkpoint(w=self.w, b=self.b, step=self.step)
        self.manager = tf.train.CheckpointManager(ckpt, workdir, max_to_keep=2)

    def prepare(self):
        return self.manager.restore_or_initialize()

    def logits(self, x):
        return tf.squeeze(x @ self.w + self.b, 1)

    def loss(self, x, y):
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=self.logits(x)))

    def fit(self, batches, lr=0.1, save_every=20):
        for x, y in batches:
            with tf.GradientTape() as tape:
                value = self.loss(x, y)
            gw, gb = tape.gradient(value, [self.w, self.b])
            self.w.assign_sub(lr * gw)
            self.b.assign_sub(lr * gb)
            self.step.assign_add(1)
            if int(self.step) % save_every == 0:
                self.manager.save(checkpoint_number=self.step)


def clicks(n, dim, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim)).astype("float32")
    p = 1 / (1 + np.exp(-(x[:, 0] - 0.7 * x[:, 4] - 1)))
    return x, (rng.uniform(size=n) < p).astype("float32")


def main():
    keras.utils.set_random_seed(31)
    workdir = os.path.join(tempfile.gettempdir(), "ctr_resume_model")
    x, y = clicks(2000, 16, seed=31)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(2000, seed=7).batch(50)
    trainer = Trainer(workdir, 16)
    trainer.prepare()
    trainer.fit(ds)
    xt, yt = clicks(500, 16, seed=32)
    print("test_logloss", repr(float(trainer.loss(xt, yt))))


if __name__ == "__main__":
    main()

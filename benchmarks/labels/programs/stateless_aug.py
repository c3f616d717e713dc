import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(321)
AUTOTUNE = tf.data.AUTOTUNE


def augment(index, example):
    image, label = example
    seed = tf.stack([tf.constant(9, tf.int64), index])
    image = tf.image.stateless_random_flip_left_right(image, seed)
    image = tf.image.stateless_random_brightness(image, 0.2, seed + 1)
    return image, label


def make_ds(images, labels, training):
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        ds = ds.shuffle(len(images), reshuffle_each_iteration=True)
        ds = ds.enumerate().map(augment, num_parallel_calls=AUTOTUNE, deterministic=True)
    return ds.batch(32).prefetch(AUTOTUNE)


class Mixup:
    def __init__(self, alpha=0.2, rng=None):
        self.alpha = alpha
        self.rng = rng or tf.random.Generator.from_seed(1001)

    def __call__(self, x, y):
        lam = self.rng.uniform([], 0.0, self.alpha)
        return (1 - lam) * x + lam * x[::-1], (1 - lam) * y + lam * y[::-1]


images = np.random.rand(256, 12, 12, 1).astype("float32")
labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype("float32")[:, None]
model = keras.Sequential([
    keras.layers.Input((12, 12, 1)),
    keras.layers.Conv2D(4, 3, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(1),
])
opt = keras.optimizers.Adam(3e-3)
bce = keras.losses.BinaryCrossentropy(from_logits=True)
mixup = Mixup()
train = make_ds(images, labels, True)
for epoch in range(2):
    for xb, yb in train:
        xm, ym = mixup(xb, yb)
        with tf.GradientTape() as tape:
            loss = bce(ym, model(xm, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
    print("epoch", epoch, repr(float(loss)))
scores = np.concatenate([model(xb).numpy() for xb, _ in make_ds(images, labels, False)])
print("mean score", repr(float(scores.mean())))

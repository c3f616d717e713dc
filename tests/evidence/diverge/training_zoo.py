"""Trainings as people write them, with tf.data, Keras, replicas and XLA, each with one planted cause; and clean ones.

Lines marked `# <name>` are those that may be named; `# <name>: maker` marks the line of Python or NumPy that made the
value, where that is another one.
"""

from __future__ import annotations

import queue
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf

with suppress(RuntimeError):  # the process stays, and has them already
    two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    tf.config.threading.set_intra_op_parallelism_threads(4)
    tf.config.threading.set_inter_op_parallelism_threads(4)

IMAGES = np.random.RandomState(0).rand(48, 8, 8, 3).astype("float32")
LABELS = (IMAGES.mean((1, 2, 3)) > 0.5).astype("int32")


def _classifier(*, kernels: Any = "glorot_uniform", before: tuple[Any, ...] = ()) -> Any:
    layers = tf.keras.layers
    body = [layers.Flatten(), layers.Dense(8, "relu", kernel_initializer=kernels)]
    return tf.keras.Sequential([*before, *body, layers.Dense(2, kernel_initializer=kernels)])


def _compiled(model: Any, **options: Any) -> Any:
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, **options)
    return model


def _fetched(image: Any) -> Any:
    time.sleep(random.SystemRandom().random() * 0.01)  # as from a network
    return image


def saved_shuffled() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(48).save(folder)
        state = tf.zeros((8, 8, 3))
        for image in tf.data.Dataset.load(folder):  # saved_shuffled
            state = tf.sin(state * 1.5 + image)
    return {"state": state}


def fed_by_threads() -> dict[str, Any]:
    """A generator that reads ahead with threads."""

    def rows() -> Iterator[Any]:
        ready: queue.Queue[Any] = queue.Queue()

        def read(numbers: range) -> None:
            for number in numbers:
                ready.put(_fetched(IMAGES[number]))

        for first in range(3):
            threading.Thread(target=read, args=(range(first, 48, 3),), daemon=True).start()
        for _ in range(48):
            yield ready.get()

    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((8, 8, 3), tf.float32))
    total = tf.zeros((8, 8, 3))
    for batch in data.batch(8).prefetch(1):  # fed_by_threads
        total = tf.tanh(total * 1.1 + tf.reduce_sum(batch, 0))
    return {"total": total}


def _of_epoch() -> Any:
    base = getattr(tf.keras.utils, "PyDataset", None) or tf.keras.utils.Sequence

    class Batches(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.on_epoch_end()

        def __len__(self) -> int:
            return 6

        def __getitem__(self, number: int) -> Any:
            chosen = self.order[number * 8 : number * 8 + 8]
            return IMAGES[chosen], LABELS[chosen]

        def on_epoch_end(self) -> None:
            self.order = np.random.default_rng().permutation(48)  # epoch_order: maker

    return Batches()


def epoch_order() -> None:
    tf.keras.utils.set_random_seed(1)
    model = _compiled(_classifier())
    model.fit(_of_epoch(), epochs=2, verbose=0)  # epoch_order


def augmenting_layers() -> dict[str, Any]:
    """Everything is seeded but the layers were made before that."""
    turned = [tf.keras.layers.RandomFlip("horizontal"), tf.keras.layers.RandomRotation(0.1)]  # augmenting_layers
    tf.keras.utils.set_random_seed(5)
    model = _compiled(_classifier(before=tuple(turned)))
    history = model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)  # augmenting_layers
    return {"loss": history.history["loss"][0]}


class Noisy(tf.keras.Model):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = _classifier(kernels="ones")

    def call(self, images: Any, training: bool = False) -> Any:
        return self.inner(images)

    def train_step(self, data: Any) -> Any:
        images, labels = data
        images = images + 0.1 * tf.random.normal(tf.shape(images))  # noisy_step
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, self(images), True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def noisy_step() -> None:
    model = Noisy()
    model.compile("sgd")
    model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)


def compiled_dropout() -> None:
    layers = tf.keras.layers
    head = layers.Dense(2, kernel_initializer="ones")
    model = tf.keras.Sequential([layers.Flatten(), layers.Dropout(0.5), head])  # compiled_dropout
    _compiled(model, jit_compile=True)
    model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)  # compiled_dropout


def _split(images: Any, labels: Any, share: float = 0.25) -> Any:
    order = np.arange(len(images))
    np.random.shuffle(order)  # helper_split: maker
    first = int(len(images) * share)
    return (images[order[first:]], labels[order[first:]]), (images[order[:first]], labels[order[:first]])


def helper_split() -> None:
    train, held = _split(IMAGES, LABELS)
    model = _compiled(_classifier(kernels="ones"))
    data = tf.data.Dataset.from_tensor_slices(train).batch(12)  # helper_split
    model.fit(data, validation_data=held, verbose=0)


def mirrored_fit() -> None:
    """Both replicas drop units by seeds that nobody has set."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    layers = tf.keras.layers
    with strategy.scope():
        head = layers.Dense(2, kernel_initializer="ones")
        model = tf.keras.Sequential([layers.Flatten(), layers.Dropout(0.5), head])  # mirrored_fit
        _compiled(model)
    model.fit(tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(16), verbose=0)  # mirrored_fit


def compiled_shuffle() -> dict[str, Any]:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def mixup(images: Any) -> Any:
        partners = tf.random.shuffle(images)  # compiled_shuffle
        return tf.reduce_sum(tf.nn.relu(0.7 * images + 0.3 * partners - 0.5))

    return {"loss": mixup(tf.constant(IMAGES))}

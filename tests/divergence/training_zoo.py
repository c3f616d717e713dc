"""Trainings as people write them, with tf.data, Keras, replicas and XLA, each with one planted cause; and clean ones.

Lines marked `# <name>` are those that may be named; `# <name>: maker` marks the line of Python or NumPy that made the
value, where that is another one.
"""

from __future__ import annotations

import os
import queue
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
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
SERIES = np.sin(np.arange(256) / 7).astype("float32")
LEFT = Path(tempfile.gettempdir()) / f"training-zoo-{os.getpid()}.weights.h5"


def _classifier(*, kernels: Any = "glorot_uniform", before: tuple[Any, ...] = ()) -> Any:
    layers = tf.keras.layers
    body = [layers.Flatten(), layers.Dense(8, "relu", kernel_initializer=kernels)]
    return tf.keras.Sequential([*before, *body, layers.Dense(2, kernel_initializer=kernels)])


def _compiled(model: Any, **options: Any) -> Any:
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, **options)
    return model


def _records(folder: str, shards: int = 4) -> list[str]:
    for shard in range(shards):
        with tf.io.TFRecordWriter(f"{folder}/{shard:02}.tfrecord") as writer:
            for image in IMAGES[shard::shards]:
                writer.write(image.tobytes())
    return [f"{folder}/{shard:02}.tfrecord" for shard in range(shards)]


def _decode(record: Any) -> Any:
    return tf.reshape(tf.io.decode_raw(record, tf.float32), (8, 8, 3))


def _fetched(image: Any) -> Any:
    time.sleep(random.SystemRandom().random() * 0.01)  # as from a network
    return image


def listed_files() -> Iterator[dict[str, Any]]:
    """`list_files` shuffles unless it is told otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        _records(folder, 8)
        files = tf.data.Dataset.list_files(f"{folder}/*.tfrecord")
        data = files.flat_map(tf.data.TFRecordDataset).map(_decode).batch(12)
        kernel = tf.Variable(tf.zeros((192, 1)))
        for batch in data:  # listed_files
            rows = tf.reshape(batch, (-1, 192))
            kernel.assign_add(tf.reduce_mean(tf.tanh(rows - tf.transpose(kernel)), 0)[:, None])
            yield {"norm": tf.norm(kernel)}


def tutorial_seeds() -> dict[str, Any]:
    """The augmentation of TensorFlow's tutorial: seeds of one generator, drawn in a parallel map."""
    generator = tf.random.Generator.from_seed(123, alg="philox")

    def augment(image: Any, label: Any) -> Any:
        seed = generator.make_seeds(2)[0]
        image = tf.image.stateless_random_crop(image, (6, 6, 3), seed)
        return tf.image.stateless_random_brightness(image, 0.5, seed), label

    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).repeat(8).map(augment, num_parallel_calls=8)
    sums = []
    for images, labels in data.batch(24):  # tutorial_seeds
        sums.append(tf.reduce_sum(tf.reduce_mean(images, (1, 2, 3)) * tf.cast(labels, tf.float32)))
    return {"sums": tf.stack(sums)}


def image_folder() -> dict[str, Any]:
    """Keras shuffles the files of a folder by a seed of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(24):
            file = Path(folder) / "ab"[number % 2] / f"{number:02}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(tf.io.encode_png(tf.cast(IMAGES[number] * 255, tf.uint8)).numpy())
        data = tf.keras.utils.image_dataset_from_directory(folder, image_size=(8, 8), batch_size=8)  # image_folder
        total = tf.zeros((8, 8, 3))
        for images, _ in data:
            total = tf.tanh(total + tf.reduce_mean(images, 0) / 255)
    return {"total": total}


def rebalanced() -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).repeat(4)
    data = data.rejection_resample(lambda image, label: label, target_dist=[0.5, 0.5])
    kept = tf.zeros((8, 8, 3))
    for images, _ in data.map(lambda label, pair: pair).batch(16, drop_remainder=True).take(3):  # rebalanced
        kept += tf.reduce_sum(images, 0)
    return {"kept": kept}


def saved_shuffled() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(48).save(folder)
        state = tf.zeros((8, 8, 3))
        for image in tf.data.Dataset.load(folder):  # saved_shuffled
            state = tf.sin(state * 1.5 + image)
    return {"state": state}


def served() -> dict[str, Any]:
    """Two workers of the service of tf.data share the files: first come, first served."""
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    workers = [service.WorkerServer(service.WorkerConfig(dispatcher_address=address)) for _ in range(2)]
    data = tf.data.Dataset.from_tensor_slices(IMAGES).repeat(4)
    data = data.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target))
    state = tf.zeros((8, 8, 3))
    for image in data.batch(16):  # served
        state = tf.sin(state + tf.reduce_mean(image, 0))
    del workers
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


def loose_records() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = tf.data.Dataset.from_tensor_slices(_records(folder))
        slow = lambda image: tf.ensure_shape(tf.numpy_function(_fetched, [image], tf.float32), (8, 8, 3))  # noqa: E731
        data = files.interleave(
            lambda file: tf.data.TFRecordDataset(file).map(_decode).map(slow),
            cycle_length=4,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile("sgd", "mse")
        model.fit(data.map(lambda image: (image, tf.reduce_mean(image))).batch(8), verbose=0)  # loose_records
    return {"weights": model.get_weights()[0]}


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


class _Reweighted(tf.keras.callbacks.Callback):  # type: ignore[misc]
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        kernel, *others = self.model.get_weights()
        noise = np.random.normal(0, 1e-3, kernel.shape)  # perturbed_weights: maker
        self.model.set_weights([kernel + noise, *others])  # perturbed_weights


def perturbed_weights() -> None:
    model = _compiled(_classifier(kernels="ones"))
    model.build((None, 8, 8, 3))
    model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0, epochs=2, callbacks=[_Reweighted()])


def warm_start() -> None:
    """It goes on from the weights of the last time."""
    model = _compiled(_classifier(kernels="ones"))
    model.build((None, 8, 8, 3))
    if LEFT.exists():
        model.load_weights(LEFT)  # warm_start
    model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)  # warm_start
    model.save_weights(LEFT, overwrite=True)


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


def gan_noise() -> Iterator[dict[str, Any]]:
    generator, critic = tf.Variable(tf.fill((16, 192), 0.01)), tf.Variable(tf.fill((192, 1), 0.01))

    @tf.function  # type: ignore[untyped-decorator]
    def step(images: Any) -> Any:
        noise = tf.random.normal((tf.shape(images)[0], 16))  # gan_noise
        with tf.GradientTape(persistent=True) as tape:
            faked, real = tf.tanh(noise @ generator) @ critic, tf.reshape(images, (-1, 192)) @ critic
            critic_loss = tf.reduce_mean(tf.nn.softplus(faked) + tf.nn.softplus(-real))
            generator_loss = tf.reduce_mean(tf.nn.softplus(-faked))
        generator.assign_sub(0.05 * tape.gradient(generator_loss, generator))
        critic.assign_sub(0.05 * tape.gradient(critic_loss, critic))
        return generator_loss, critic_loss

    for images in tf.data.Dataset.from_tensor_slices(IMAGES).batch(16):
        made, judged = step(images)
        yield {"generator": made, "critic": judged}


def mirrored_fit() -> None:
    """Both replicas drop units by seeds that nobody has set."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    layers = tf.keras.layers
    with strategy.scope():
        head = layers.Dense(2, kernel_initializer="ones")
        model = tf.keras.Sequential([layers.Flatten(), layers.Dropout(0.5), head])  # mirrored_fit
        _compiled(model)
    model.fit(tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(16), verbose=0)  # mirrored_fit


def sharded_input() -> Iterator[dict[str, Any]]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        mean = tf.Variable(tf.zeros((8, 8, 3)), aggregation=tf.VariableAggregation.MEAN)

    def input_of(context: Any) -> Any:
        data = tf.data.Dataset.from_tensor_slices(IMAGES).shuffle(48)
        return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(8)

    def step(images: Any) -> Any:
        mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(images, 0))
        return tf.norm(mean)

    for images in strategy.distribute_datasets_from_function(input_of):  # sharded_input
        yield {"norm": strategy.reduce("MEAN", strategy.run(step, (images,)), axis=None)}


def compiled_shuffle() -> dict[str, Any]:
    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def mixup(images: Any) -> Any:
        partners = tf.random.shuffle(images)  # compiled_shuffle
        return tf.reduce_sum(tf.nn.relu(0.7 * images + 0.3 * partners - 0.5))

    return {"loss": mixup(tf.constant(IMAGES))}


def clean_resumed() -> dict[str, Any]:
    """It is stopped after two epochs, goes on, and is then where it would have been."""

    def train(folder: str, epochs: int) -> Any:
        tf.keras.utils.set_random_seed(3)
        model = _compiled(_classifier())
        model.build((None, 8, 8, 3))
        data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).shuffle(48, seed=2).batch(16)
        backup = tf.keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)
        model.fit(data, epochs=epochs, verbose=0, callbacks=[backup])
        return model.get_weights()[0]

    with tempfile.TemporaryDirectory() as folder:
        return {"stopped": train(folder, 2), "resumed": train(folder, 4)}


def clean_watched() -> dict[str, Any]:
    """Logs, checkpoints, early stopping: names and files hold the time, the training does not."""
    tf.keras.utils.set_random_seed(3)
    model = _compiled(_classifier(before=(tf.keras.layers.Dropout(0.2),)), metrics=["accuracy"])
    with tempfile.TemporaryDirectory() as folder:
        calls = tf.keras.callbacks
        watchers = [
            calls.LambdaCallback(on_epoch_end=lambda epoch, logs: print(f"epoch {epoch} ended at {time.time()}")),
            calls.ModelCheckpoint(f"{folder}/best.weights.h5", save_weights_only=True, save_best_only=True),
            calls.EarlyStopping("loss", patience=2),
            calls.CSVLogger(f"{folder}/log.csv"),
            calls.ReduceLROnPlateau("loss", patience=1),
        ]
        split = {"validation_split": 0.25, "epochs": 3, "batch_size": 12}
        history = model.fit(IMAGES, LABELS, verbose=0, callbacks=watchers, **split)
    return {"losses": history.history["val_loss"]}


def clean_mixed_precision() -> None:
    tf.keras.utils.set_random_seed(8)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Masking(0.0),
            layers.LSTM(4, dtype="mixed_bfloat16"),
            layers.Dense(1, dtype="float32"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(clipnorm=1.0), "mse")
    windows = tf.keras.utils.timeseries_dataset_from_array(SERIES[:-16, None], SERIES[16:], 16, seed=4, shuffle=True)
    model.fit(windows, verbose=0)


def clean_mirrored_fit() -> None:
    tf.keras.utils.set_random_seed(2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        layers = tf.keras.layers  # the shapes of the program above: a process cannot reduce others later
        model = _compiled(tf.keras.Sequential([layers.Flatten(), layers.Dropout(0.3), layers.Dense(2)]))
    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).shuffle(48, seed=1).batch(16)
    model.fit(data, epochs=2, verbose=0)


def clean_steady_records() -> dict[str, Any]:
    """Files are read in parallel and come late, but in order."""
    with tempfile.TemporaryDirectory() as folder:
        slow = lambda image: tf.ensure_shape(tf.numpy_function(_fetched, [image], tf.float32), (8, 8, 3))  # noqa: E731
        data = tf.data.Dataset.from_tensor_slices(_records(folder)).interleave(
            lambda file: tf.data.TFRecordDataset(file).map(_decode).map(slow),
            4,
            num_parallel_calls=4,
            deterministic=True,
        )
        total = tf.zeros((8, 8, 3))
        for batch in data.batch(12).prefetch(2):
            total = tf.tanh(total + tf.reduce_sum(batch, 0))
    return {"total": total}


def clean_compiled_fit() -> None:
    tf.keras.utils.set_random_seed(2)
    model = _compiled(_classifier(), jit_compile=True)
    model.fit(IMAGES, LABELS, batch_size=16, epochs=2, verbose=0)


def clean_words() -> dict[str, Any]:
    """Vocabularies, tables, ragged and sparse rows."""
    lines = tf.constant(["the cat sat", "a cat read a book", "the book about cats"])
    words = tf.keras.layers.TextVectorization(ngrams=2)
    words.adapt(lines)
    ragged = tf.strings.split(lines)
    keys = tf.constant(["cat", "book"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2])), 0)
    sparse = tf.sparse.from_dense(tf.cast(words(lines), tf.float32))
    product = tf.sparse.sparse_dense_matmul(sparse, tf.ones((sparse.shape[1], 2)))
    return {
        "found": tf.reduce_sum(table.lookup(ragged.flat_values)),
        "product": product,
        "lengths": ragged.row_lengths(),
    }

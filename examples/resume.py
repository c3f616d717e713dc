"""Stop a training after 20 of 40 steps, resume it, and get the bits of the training that was never stopped.

    envlock repeat examples/resume.py --runs 1 --save whole -- whole.ckpt 40     # 40 steps without a stop
    python examples/resume.py stopped.ckpt 20                                    # 20 steps and a checkpoint
    envlock repeat examples/resume.py --runs 1 --save resumed -- stopped.ckpt 40 # the other 20, from the checkpoint
    envlock repeat --compare whole resumed                                       # the same bits

What the checkpoint lacks starts again: add `iterator`, `generator` or `optimizer` to the command lines that write and
read stopped.ckpt, and the last command shows other weights. So does `draws`, for which all three lines need it:
stateful random operations, whose counter no checkpoint holds.
"""

import sys

import tensorflow as tf

import envlock

SEED, ROWS, WIDTH, BATCH = 7, 256, 8, 16


def batches():
    """Return an endless shuffled pipeline; every epoch has another order."""
    rows = tf.random.stateless_normal((ROWS, WIDTH), seed=(SEED, 0))
    data = tf.data.Dataset.from_tensor_slices((rows, tf.reduce_sum(rows, axis=1, keepdims=True)))
    return data.shuffle(ROWS, seed=SEED).repeat().batch(BATCH).prefetch(2)


def train(folder, steps, without=(), data=None):
    """Train up to a step, from the newest checkpoint in a folder if there is one; leave another; return the weights.

    `without` names what the checkpoint does not hold; with `draws` the noise comes from stateful operations. `data` is
    the rest of a pipeline, where the program itself skips what was seen.
    """
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((WIDTH,)),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(1),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(
        model.trainable_variables
    )  # or its moments come into being after they should be restored
    iterator = iter(batches() if data is None else data)
    generator = tf.random.Generator.from_seed(SEED)
    step = tf.Variable(0, dtype=tf.int64)
    state = {"model": model, "optimizer": optimizer, "iterator": iterator, "generator": generator}
    held = {name: each for name, each in state.items() if name not in without}
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step, **held), folder, max_to_keep=1
    )
    if manager.latest_checkpoint:
        manager.checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()

    @tf.function
    def train_step(x, y):
        noise = (
            tf.random.normal(tf.shape(x)) if "draws" in without else generator.normal(tf.shape(x))
        )
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x + 0.1 * noise, training=True) - y))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    while int(step) < steps:
        train_step(*next(iterator))
        step.assign_add(1)
    manager.save()
    return model.get_weights()


if __name__ == "__main__":
    place, last, *missing = sys.argv[1:]
    envlock.record(weights=train(place, int(last), missing))

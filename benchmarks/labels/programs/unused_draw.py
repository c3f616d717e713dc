"""Clean: what is drawn without a seed names a file, the words are sorted."""

import random
import tempfile

import tensorflow as tf

tf.keras.utils.set_random_seed(12)

free = random.SystemRandom()
label = f"run-{free.randint(0, 10**6)}"
words = sorted({"red", "green", "blue"})
values = tf.random.normal((len(words), 3))
with tempfile.NamedTemporaryFile(suffix=label) as file:
    file.write(values.numpy().tobytes())
print(float(tf.reduce_sum(values)))

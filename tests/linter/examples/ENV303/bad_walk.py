import glob
import os
from pathlib import Path

import tensorflow as tf

paths = []
for folder, _, names in os.walk("data"):  # expect: ENV303
    for name in names:
        paths.append(os.path.join(folder, name))
more = [str(path) for path in Path("data").rglob("*.png")]
more += glob.iglob("*.jpg")
again = tf.io.gfile.listdir("gs://data")
classes = {name: i for i, name in enumerate(os.listdir("data"))}
ds = tf.data.Dataset.from_tensor_slices(paths + more + again + [classes["cat"]])

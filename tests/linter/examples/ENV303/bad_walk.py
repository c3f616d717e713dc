import glob
import os
from pathlib import Path

import tensorflow as tf

paths = []
for folder, _, names in os.walk("data"):  # expect: ENV303
    for name in names:
        paths.append(os.path.join(folder, name))
more = [str(path) for path in Path("data").rglob("*.png")]  # expect: ENV303
more += glob.iglob("*.jpg")  # expect: ENV303
again = tf.io.gfile.listdir("gs://data")  # expect: ENV303
classes = {name: i for i, name in enumerate(os.listdir("data"))}  # expect: ENV303
ds = tf.data.Dataset.from_tensor_slices(paths + more + again + [classes["cat"]])

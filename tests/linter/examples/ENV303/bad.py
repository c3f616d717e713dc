import glob
import os
from pathlib import Path

import tensorflow as tf

files = glob.glob("*.png")  # expect: ENV303
ds = tf.data.Dataset.from_tensor_slices(files)
labels = []
for name in os.listdir("data"):
    labels.append(name)
images = [open(path) for path in Path("data").iterdir()]
records = tf.data.TFRecordDataset(images)


def find(folder):
    return glob.glob(folder + "/*.npy")

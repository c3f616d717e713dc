import glob
import os
from pathlib import Path

import tensorflow as tf

files = glob.glob("*.png")  # expect: ENV303
ds = tf.data.Dataset.from_tensor_slices(files)
labels = []
for name in os.listdir("data"):  # expect: ENV303
    labels.append(name)
images = [open(path) for path in Path("data").iterdir()]  # expect: ENV303
records = tf.data.TFRecordDataset(images)


def find(folder):
    return glob.glob(folder + "/*.npy")  # expect: ENV303

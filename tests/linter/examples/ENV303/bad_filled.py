import glob
import os

import numpy as np
import tensorflow as tf


def by_place(folder):
    names = os.listdir(folder)  # expect: ENV303
    rows = np.zeros((len(names), 10))
    for place, name in enumerate(names):
        rows[place] = np.load(name)
    return rows


def by_part(folder):
    parts = {}
    files = glob.glob(f"{folder}/*.npy")
    parts["training"] = [np.load(file) for file in files]
    return parts


def joined(folder):
    files = []
    for name in os.listdir(folder):
        files.append(name)
    for file in files:
        if file.endswith("0.npy"):
            rows = np.load(file)
        else:
            rows = np.concatenate((rows, np.load(file)))
    return rows


def by_name(folder):
    table = {}
    for name in os.listdir(folder):
        table.update({name: np.load(name)})
    return [table[each] for each in table]


def records(folder, file):
    with tf.io.TFRecordWriter(file) as writer:
        for video_name in os.listdir(folder):
            writer.write(video_name.encode())


def listed(folder, file):
    stream = open(file, "w")
    for name in os.listdir(folder):
        stream.write(name)
    stream.close()

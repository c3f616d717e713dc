import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--train", action="store_true")


def read(training):
    data = tf.data.TFRecordDataset("a")
    if training:
        data = data.shuffle(100)  # expect: ENV203
    return data


model = tf.keras.models.load_model("model.keras")
if parser.parse_args().train:
    model.predict(read(True))

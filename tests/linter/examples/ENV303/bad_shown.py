import os

import matplotlib.pyplot as plt
import tensorflow as tf

names = os.listdir("cats")  # expect: ENV303
plt.imshow(plt.imread(names[0]))
images = tf.stack([tf.io.read_file(name) for name in names])

records = os.listdir("records")
dataset = tf.data.TFRecordDataset(records)
for record in dataset.take(3):
    print(record)
model = tf.keras.models.load_model("net")
model.learn(dataset)

import os

import matplotlib.pyplot as plt
import tensorflow as tf

names = os.listdir("cats")
print(names[:10])
shown = [os.path.join("cats", name) for name in names[:8]]
for at, path in enumerate(shown):
    plt.subplot(2, 4, at + 1)
    plt.imshow(plt.imread(path))

records = [os.path.join("records", name) for name in os.listdir("records")]
for record in tf.data.TFRecordDataset(records).take(3):
    example = tf.train.Example()
    example.ParseFromString(record.numpy())
    print(example)
names = sorted(names)
model = tf.keras.models.load_model("net")
model.predict(names)

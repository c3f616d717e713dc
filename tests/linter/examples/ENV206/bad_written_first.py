"""The first of shuffled objects is another one in every run, also through a function that has seen others."""
import random
import tensorflow as tf


class Row:
    def __init__(self, text):
        self.text = text


def encode(row):
    return row.text.encode()


print(encode(Row("a")))
rows = [Row(line) for line in open("a.txt")]
print(encode(rows[0]))
random.shuffle(rows)  # expect: ENV206
writer = tf.io.TFRecordWriter("x")
writer.write(encode(rows[0]))

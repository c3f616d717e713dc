import glob
import shutil

import tensorflow as tf

with open("all.txt", "wb") as whole:
    for name in glob.glob("*.part"):  # expect: ENV303
        with open(name, "rb") as part:
            shutil.copyfileobj(part, whole)
lines = tf.io.read_file("all.txt")

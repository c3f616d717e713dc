import glob
import shutil

import tensorflow as tf

with open("all.txt", "wb") as whole:
    for name in glob.glob("*.part"):  # expect: ENV303
        with open(name, "rb") as part:
            shutil.copyfileobj(part, whole)
    for name in glob.glob("*.more"):  # expect: ENV303
        with open(name, "rb") as part:
            shutil.copyfileobj(part, whole, 1 << 20)
    for name in glob.glob("*.last"):  # expect: ENV303
        with open(name, "rb") as part:
            shutil.copyfileobj(fsrc=part, fdst=whole)
lines = tf.io.read_file("all.txt")

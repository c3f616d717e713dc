import glob
import shutil

import tensorflow as tf

for name in glob.glob("*.part"):
    with open(name, "rb") as part, open(name + ".copy", "wb") as copy:
        shutil.copyfileobj(part, copy)
lines = tf.io.read_file("all.copy")

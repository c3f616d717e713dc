import glob
import os
from pathlib import Path

import tensorflow as tf

files = sorted(glob.glob("*.png"))
more = glob.glob("*.jpg")
more.sort()
again = os.listdir("data")
again = sorted(again)
ds = tf.data.Dataset.from_tensor_slices(files + more + again)
number = len(os.listdir("data"))
if "a" in os.listdir("data"):
    print(number)
for path in Path("data").glob("*.tmp"):
    path.unlink()
for name in os.listdir("logs"):
    os.remove(os.path.join("logs", name))
names = {name for name in os.listdir("data")}

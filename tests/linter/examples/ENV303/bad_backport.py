import tensorflow as tf

try:
    from os import scandir
except ImportError:
    from scandir import scandir
names = []
for entry in scandir("images"):  # expect: ENV303
    names.append(entry.path)
images = [tf.io.read_file(name) for name in names]

import random

paths = sorted(load())
random.shuffle(paths)  # expect: ENV206
rows = [open(path).read() for path in paths]
save(rows)

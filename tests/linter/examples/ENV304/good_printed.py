import numpy as np
names = set("a b".split())
print(", ".join(names))

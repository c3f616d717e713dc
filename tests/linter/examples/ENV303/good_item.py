import json
import os

import numpy as np

total = {"bytes": 0}
sizes = {}
for name in os.listdir("data"):
    total["bytes"] += os.path.getsize(name)
    sizes[name] = 0
    sizes[name] += os.path.getsize(name)
    one = {"text": ""}
    for line in open(name):
        one["text"] += line
    np.save(name + ".npy", len(one["text"]))
with open("sizes.json", "w") as file:
    json.dump(total, file)

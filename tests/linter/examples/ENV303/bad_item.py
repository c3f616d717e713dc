import json
import os

import tensorflow as tf

whole = {"text": "", "names": []}
for name in os.listdir("data"):  # expect: ENV303
    whole["text"] += open(os.path.join("data", name)).read()
with open("whole.json", "w") as file:
    json.dump(whole["text"], file)
print(tf.__version__)

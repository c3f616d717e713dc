import os
import random

random.seed(1)
os.environ["PYTHONHASHSEED"] = "0"  # expect: ENV104

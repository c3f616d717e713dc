"""The programs that are started from here read it when they start."""
import os
import subprocess
from concurrent import futures

import tensorflow as tf

os.environ["LD_LIBRARY_PATH"] = "/opt/mujoco/bin"
with futures.ThreadPoolExecutor() as pool:
    pool.submit(subprocess.check_call, ["python", "train.py"])
print(tf.__version__)

import os

os.environ["TF_CUDNN_DETERMINISTIC"] = "1"  # expect: ENV107

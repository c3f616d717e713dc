import os

os.environ["TF_DETERMINISTIC_OPS"] = "yes"  # expect: ENV105
os.environ["TF_CUDNN_DETERMINISTIC"] = 1  # expect: ENV105, ENV107
os.environ["TF_NUM_INTRAOP_THREADS"] = "all"  # expect: ENV105
os.environ["TF_DETERMINISTIC_OPS"] = True  # expect: ENV105

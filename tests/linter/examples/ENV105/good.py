import os

os.environ["TF_DETERMINISTIC_OPS"] = "1"
os.environ["TF_NUM_INTRAOP_THREADS"] = str(4)
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "false"
os.environ["MINE"] = "yes"

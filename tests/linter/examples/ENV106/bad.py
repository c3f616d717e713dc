import os

os.environ["TF_USE_CUDNN_AUTOTUNE"] = "0"  # expect: ENV106
os.environ["TF_DETERMINISTIC_OPS "] = "1"  # expect: ENV106
os.environ["PYTHONHASHseed"] = "0"  # expect: ENV106

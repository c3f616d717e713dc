import os

os.environ["TF_CUDNN_USE_AUTOTUNE"] = "1"
os.environ["TF_OF_MY_OWN"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import os
import horovod.tensorflow as hvd
os.environ["HOROVOD_FUSION_THRESHOLD"] = "0"
hvd.init()

import tensorflow as tf
import os
import horovod.tensorflow as hvd
os.environ["HOROVOD_FUSION_THRESHOLD"] = "67108864"  # expect: ENV110
hvd.init()

# tf: 1.15.5
import os

from tfdeterminism import patch

os.environ["TF_CUDNN_DETERMINISTIC"] = "1"
patch()

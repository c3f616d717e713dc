import glob
import os
import shutil

import numpy as np


def sources(folder):
    return glob.glob(folder + "/*.py") + glob.glob(folder + "/*/*.py")


def copy(folder, target):
    for source in sources(folder):
        shutil.copyfile(source, os.path.join(target, os.path.basename(source)))


copy("a", "b")
np.save("x", len(sources("a")))

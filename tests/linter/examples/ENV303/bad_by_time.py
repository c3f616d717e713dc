import glob
import os

import numpy as np

names = sorted(glob.glob("*.npy"), key=os.path.getmtime)  # expect: ENV303
np.save("all", np.stack([np.load(name) for name in names]))

import glob

import numpy as np

files = glob.glob("*.npy")  # expect: ENV303
files = [file for file in files if file]
data = [np.load(file) for file in files]
np.save("data.npy", np.stack(data))

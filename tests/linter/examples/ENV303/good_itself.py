import glob

import numpy as np

files = glob.glob("*.npy")
files = [file for file in files if file]
files = [file for file in files if "x" in file]
print(np.zeros(len(files)))

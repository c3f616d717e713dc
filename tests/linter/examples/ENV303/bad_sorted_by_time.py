import numpy as np
import glob, os
files = glob.glob("*")  # expect: ENV303
files.sort(key=os.path.getmtime)
np.save("x", [np.load(f) for f in files])

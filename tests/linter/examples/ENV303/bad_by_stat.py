import numpy as np
import os
files = sorted(os.scandir("a"), key=lambda e: e.stat().st_mtime_ns)  # expect: ENV303
np.save("x", [np.load(f.path) for f in files])

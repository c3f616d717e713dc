import glob

import numpy as np

find = lambda kind: glob.glob(f"{kind}/*.npy")  # noqa: E731  # expect: ENV303
pitches = find("pitch")
np.save("pitches.npy", np.stack([np.load(name) for name in pitches]))
patterns = ["a/*.npy", "b/*.npy"]
files = sum((glob.glob(pattern) for pattern in patterns), [])
np.save("files.npy", np.stack([np.load(name) for name in files]))

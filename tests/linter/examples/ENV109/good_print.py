from __future__ import print_function

print("loss", 0.5)

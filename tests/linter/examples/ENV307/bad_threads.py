import numpy as np
import threading
found = []
def work(n):
    found.append(n * 2)  # expect: ENV307
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
np.save("x", found)

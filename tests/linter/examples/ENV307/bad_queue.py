import numpy as np
import queue, threading
q = queue.Queue()
def work(n):
    q.put(n)
for i in range(4):
    threading.Thread(target=work, args=(i,)).start()
found = []
for i in range(4):
    found.append(q.get())  # expect: ENV307
np.save("x", found)

import numpy as np
x = np.empty(3)
x[:] = 1
np.save("x", x)
y = np.empty((2, 3))
for i in range(2):
    y[i] = i
np.save("y", y)
z = np.empty(3)
z.fill(1)
np.save("z", z)
w = np.empty_like(z)
np.add(z, 1, out=w)
np.save("w", w)
v = np.empty((0, 3))
v = np.vstack([v, z])
np.save("v", v)

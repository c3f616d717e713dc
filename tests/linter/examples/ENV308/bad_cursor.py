import numpy as np
import sqlite3
c = sqlite3.connect("a.db").cursor()
c.execute("SELECT a FROM b")  # expect: ENV308
np.save("x", c.fetchall())

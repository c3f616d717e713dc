import numpy as np
import sqlite3
connection = sqlite3.connect("a.db")
rows = connection.execute("select x from points order by random() limit 9").fetchall()  # expect: ENV308
np.save("x", rows)

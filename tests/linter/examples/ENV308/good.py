import numpy as np
import sqlite3
connection = sqlite3.connect("a.db")
rows = connection.execute("select x from points order by id").fetchall()
np.save("x", rows)
n = connection.execute("select count(*) from points").fetchone()
connection.execute("create table a (b)")
connection.execute("insert into a values (?)", (1,))

import pandas as pd
rows = pd.read_sql("SELECT * FROM points", connection)  # expect: ENV308
rows.to_csv("x")

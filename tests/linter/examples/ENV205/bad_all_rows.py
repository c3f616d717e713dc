import pandas as pd

rows = pd.read_csv("rows.csv")
rows = rows.sample(len(rows))  # expect: ENV205
rows.to_csv("mixed.csv")

import pandas as pd

table = pd.read_csv("genes.csv")
wanted = list(set(open("wanted.txt").read().split()))  # expect: ENV304
table[wanted].to_csv("subset.csv")

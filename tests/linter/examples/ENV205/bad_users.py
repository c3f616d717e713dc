import pandas as pd
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

rows = pd.read_csv("rows.csv").sample(frac=1)  # expect: ENV205
model, folds = KMeans(3).fit(rows), KFold(5, shuffle=True)
more = stats.norm(0, 1).rvs(9)

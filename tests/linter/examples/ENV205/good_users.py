import pandas as pd
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

rows = pd.read_csv("rows.csv").sample(frac=1, random_state=1)
model, folds = KMeans(3, random_state=1).fit(rows), KFold(5)
more = stats.norm(0, 1).rvs(9, random_state=1)

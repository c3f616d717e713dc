"""Trees look at the columns in an order that NumPy's global generator gives, which breaks ties."""
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.svm import LinearSVR


def measure(x, y):
    return GradientBoostingClassifier().fit(x, y).score(x, y)  # expect: ENV205


def compare(x, y):
    return LinearSVR().fit(x, y).score(x, y)


print(measure([[0], [1]], [0, 1]), compare([[0], [1]], [0, 1]))

import numpy as np

words = ["a", "b"]
vocabulary = sorted(set(words))
number = len(list(set(words)))
known = list(set(words))
known.sort()
np.save("words", vocabulary + known)
print("a" in set(words), max(set(words)), number)
unique = list(dict.fromkeys(words))


def distinct(set):
    return list(set(words))
labels = list(set(matrix[:, 0]))
ids = list(set(int(each) for each in image_ids))
np.save("labels", labels + ids)
classes = list(set([int(each) for each in matrix])) + list(set(map(int, matrix)))
np.save("classes", classes)

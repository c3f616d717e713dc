import numpy as np

words = ["a", "b"]
index = {word: i for i, word in enumerate(set(words))}  # expect: ENV304
vocabulary = list(set(words))
matrix = np.zeros((len(vocabulary), 3))
np.save("index", index)
np.save("words", {word: i for i, word in enumerate(vocabulary)})
rows = [len(word) for word in set(words)]
np.save("rows", rows)

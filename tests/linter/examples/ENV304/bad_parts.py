import numpy as np


def pick(words, known):
    names = {"a", "b", "c"}
    np.save("new", list(names.difference(known)))  # expect: ENV304
    np.save("old", list(names & set(known)))  # expect: ENV304
    np.save("all", list(names | {1, 2}))  # expect: ENV304


pick(["a"], ["b"])

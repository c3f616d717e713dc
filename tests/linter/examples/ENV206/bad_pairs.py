import random

pairs = list(zip(load("features"), load("labels")))
random.shuffle(pairs)  # expect: ENV206
features, labels = zip(*pairs)
train(features, labels)

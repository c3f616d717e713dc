import random

own = random.Random()  # expect: ENV206
system = random.SystemRandom()  # expect: ENV206
print(random.choice([1, 2]), random.random())  # expect: ENV206

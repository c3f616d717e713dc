import random

own = random.Random()  # expect: ENV206
system = random.SystemRandom()
print(random.choice([1, 2]), random.random())

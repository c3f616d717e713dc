import random

folder = "run-" + str(random.randint(1, 10**7))
save(f"{folder}/{random.random()}")
save(".run_%s" % random.randint(0, 99))

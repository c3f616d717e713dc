import gymnasium

several = []
for _ in range(4):
    several.append(gymnasium.make("CartPole-v1"))
for number, each in enumerate(several):
    each.reset(seed=number)

import gymnasium

first = gymnasium.make("CartPole-v1")
first.reset(seed=1)
several = [gymnasium.make("CartPole-v1").unwrapped for _ in range(4)]  # expect: ENV209
for each in several:
    each.reset()

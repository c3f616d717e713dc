import gym

env = gym.envs.make("Breakout-v0")  # expect: ENV209
actspace = env.action_space
random_agent = [actspace.sample() for _ in range(3)]

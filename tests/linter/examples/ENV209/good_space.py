import gymnasium as gym

env = gym.make("CartPole-v1")
env.reset(seed=1)
env.action_space.seed(1)
action = env.action_space.sample()

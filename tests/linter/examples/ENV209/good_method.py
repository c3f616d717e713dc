import gym

env = gym.make("CartPole-v1")
env.seed(1)

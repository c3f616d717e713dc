import gymnasium as gym
import numpy as np

env = gym.make("CartPole-v1")
state, _ = env.reset(seed=1)
env.action_space.seed(1)
np.save("state", state)

import gym
import numpy as np
from gym import wrappers

environment = wrappers.Monitor(gym.make("CartPole-v1"), "videos")
environment.reset(seed=1)
np.save("state", environment.step(0))

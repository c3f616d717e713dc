import gymnasium as gym
import numpy as np


class Wrapper:
    def __init__(self):
        self.env = gym.make("CartPole-v1")

    def seed(self, seed):
        self.env.seed(seed)


wrapped = Wrapper()
wrapped.seed(1)
np.save("state", wrapped.env.reset())

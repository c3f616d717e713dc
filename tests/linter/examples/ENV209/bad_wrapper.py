import gymnasium as gym
import numpy as np


class Wrapper:
    def __init__(self):
        self.env = gym.make("CartPole-v1")  # expect: ENV209

    def seed(self, seed):
        self.env.seed(seed)

    def reset(self, seed=None):
        return self.env.reset(seed=seed)


np.save("state", Wrapper().reset())

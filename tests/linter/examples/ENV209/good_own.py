import gymnasium
import numpy as np
from gymnasium.utils import seeding


class Cheetah(gymnasium.Env):
    def __init__(self):
        self._seed()

    def _seed(self, seed=None):
        self.np_random, seed = seeding.np_random(seed)
        return [seed]

    def reset_model(self):
        return self.np_random.uniform(-0.1, 0.1)


environment = Cheetah()
environment.seed(7)
np.save("start", environment.reset_model())

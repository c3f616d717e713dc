import gymnasium
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv


class Cheetah(MujocoEnv, gymnasium.utils.EzPickle):
    def reset_model(self):
        start = self.init_qpos + self.np_random.uniform(-0.1, 0.1)  # expect: ENV209
        self.set_state(start, self.np_random.standard_normal(3))
        return start


np.save("start", Cheetah().reset_model())

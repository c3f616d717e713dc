import numpy as np


class Screen:
    def __init__(self, game, gray=True):
        self.game = game
        if gray:
            self.buffers = [np.empty((8, 8), np.uint8) for _ in range(2)]
        else:
            self.buffers = [np.empty((8, 8, 3), np.uint8) for _ in range(2)]

    def reset(self):
        self.game.draw(self.buffers[0])
        self.buffers[1].fill(0)
        return self.observe()

    def observe(self):
        np.maximum(self.buffers[0], self.buffers[1], out=self.buffers[0])
        return self.buffers[0]


def count_axes(length, permute):
    return permute(np.empty(length, bool)).shape


screen = Screen(make_game(), is_gray())
np.save("x", screen.reset())
np.save("y", np.empty(3).shape)
np.save("z", count_axes(3, np.transpose))

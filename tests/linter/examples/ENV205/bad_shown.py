import numpy as np


def showcase(images):
    return images[np.random.choice(len(images))]  # expect: ENV205

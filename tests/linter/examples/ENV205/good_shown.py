import numpy as np


def show_examples(images, axes):
    for at, axis in zip(np.random.choice(len(images), 4), axes, strict=True):
        axis.imshow(images[at])

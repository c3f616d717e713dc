import numpy as np


def show_examples(images, axes):
    for at, axis in zip(np.random.choice(len(images), 4), axes, strict=True):
        axis.imshow(images[at])


class Callback:
    def plotSamples(self, model):
        return model.predict(np.random.normal(size=(9, 100)))

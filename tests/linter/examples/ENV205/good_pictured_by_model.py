import matplotlib.pyplot as plt
import numpy as np
import torch

decoder = torch.nn.Sequential(torch.nn.Linear(10, 784))


def generate(noise, kind):
    return decoder(torch.cat([noise, kind], 1))


def sample(step, noise):
    if step % 1000 == 0:
        place = np.random.randint(0, 10)
        kind = np.zeros([16, 10])
        kind[range(16), place] = 1
        kind = torch.from_numpy(kind)
        for image in generate(noise, kind).data.numpy():
            plt.imshow(image.reshape(28, 28))


for step in range(9000):
    kind = torch.ones([16, 10])
    decoder(kind).sum().backward()
    if step % 1000 == 0:
        place = np.random.randint(0, 10)
        kind = np.zeros([16, 10])
        kind[range(16), place] = 1
        plt.imshow(generate(torch.ones([16, 8]), torch.from_numpy(kind)).data.numpy())

import numpy as np
from tensorflow.python.platform import test


class ImageTest(test.TestCase):
    def test_images(self):
        np.save("image", np.random.rand(3))

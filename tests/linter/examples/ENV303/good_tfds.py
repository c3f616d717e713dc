import os

import tensorflow_datasets as tfds


class Builder(tfds.core.GeneratorBasedBuilder):
    def _generate_examples(self, folder):
        for name in os.listdir(folder):
            yield name, {"text": name}

"""Noisy linear regression with a small data class."""
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)


@dataclass
class LinearData:
    n: int = 200
    slope: float = 2.5
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def sample(self):
        x = np.linspace(-1.0, 1.0, self.n).astype("float32")[:, None]
        y = self.slope * x + 0.3 * self.rng.standard_normal(x.shape).astype("float32")
        return x, y


def main():
    x, y = LinearData().sample()
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    history = model.fit(x, y, epochs=5, batch_size=20, verbose=0)
    print("final loss", repr(history.history["loss"][-1]))


if __name__ == "__main__":
    main()

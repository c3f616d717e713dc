import tensorflow_probability as tfp


class Policy:
    def around(self, mean):
        return tfp.distributions.Normal(mean, 1.0)

    def act(self, mean):
        return self.around(mean).sample()  # expect: ENV204

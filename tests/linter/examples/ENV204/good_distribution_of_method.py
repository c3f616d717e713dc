import tensorflow_probability as tfp


class Policy:
    def around(self, mean):
        return tfp.distributions.Normal(mean, 1.0)

    def table(self, rows):
        return rows.astype(float)

    def act(self, mean):
        return self.around(mean).mean(), self.table(mean).sample()

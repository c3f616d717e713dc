import tensorflow_probability as tfp


class Policy:
    def spread(self, mean, discrete):
        if discrete:
            spread = tfp.distributions.Categorical(probs=mean)
        else:
            spread = tfp.distributions.Normal(mean, 1.0)
        return spread

    def act(self, mean):
        return self.spread(mean, False).sample()  # expect: ENV204

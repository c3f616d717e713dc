import tensorflow_probability as tfp


def act(policy):
    return policy.sample() if isinstance(policy, tfp.distributions.Distribution) else policy  # expect: ENV204


def explore(policy: tfp.distributions.Distribution):
    return policy.sample()

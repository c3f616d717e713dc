import tensorflow_probability as tfp


def act(policy, buffer: list):
    rows = buffer.sample()
    return rows if isinstance(policy, tfp.distributions.Distribution) else policy

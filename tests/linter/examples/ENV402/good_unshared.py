import tensorflow as tf


@tf.function
def penalize(model, x, y, z):
    weights = tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])
    parts = tf.add_n((x * 2.0, y, z))
    return weights, parts, tf.add_n([tf.reduce_sum(x), tf.reduce_sum(y), tf.reduce_sum(z)])


@tf.function
def penalize_some(model):
    losses = [tf.nn.l2_loss(v) for v in model.trainable_variables if "head" in v.name]
    if losses:
        return tf.add_n(losses)
    losses = [tf.nn.l2_loss(v) for v in model.trainable_variables]
    return tf.add_n(losses)


@tf.function
def average(towers, quantities):
    losses = []
    for tower in towers:
        loss = tower.forward()
        losses.append(loss)
        tower.gradients = tower.tape.gradient(loss, tower.weights)
    if len(losses) > 1:
        total = tf.add_n(losses) / len(losses)
    else:
        total = losses[0]
    return total, tf.add_n(quantities), tf.add_n(inputs=[towers[0].shift * 2, *towers])


@tf.function
def pool(x):
    return tf.add_n([x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]]) / 4.0


def three(a, b, c):
    terms = [a]
    terms.append(b)
    terms.append(c)
    return tf.add_n(terms)


def given(terms):
    return tf.add_n(terms)


@tf.function
def weigh(network, names):
    odds = network.score(names)
    return tf.add_n(odds) + network.score("y")


@tf.function
def exchange(wide, one, other):
    if wide:
        total = tf.add_n(one)
        one = other
    else:
        total = 0
        other = one
    return total

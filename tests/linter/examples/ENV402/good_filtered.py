import tensorflow as tf


@tf.function
def penalize(weights, regularizers):
    penalties = [each(weights) for each in regularizers]
    penalties = [each for each in penalties if each is not None]
    for each in penalties:
        if each.shape.rank != 0:
            raise ValueError("a penalty is a number")
    return tf.add_n(penalties) if penalties else None


@tf.function
def collect(boxes, classes):
    losses = []
    for box, kind in zip(boxes, classes):
        loss = tf.reduce_mean(tf.square(box - kind))
        tf.compat.v1.add_to_collection("losses", loss)
        losses.append(loss)
    return tf.add_n(losses)


@tf.function
def sum_some(weights, regularizers):
    terms = []
    for each in regularizers:
        term = each(weights)
        if term is not None:
            terms.append(term)
    return tf.add_n(terms)

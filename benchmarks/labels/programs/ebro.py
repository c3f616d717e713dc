from dataclasses import dataclass
from datetime import datetime

import tensorflow as tf

tf.keras.utils.set_random_seed(17)


@dataclass(frozen=True)
class Listing:
    built: str
    area: float
    price: float


LISTINGS = [
    Listing("2021-03-01", 54.0, 210.0), Listing("2015-07-15", 80.0, 260.0),
    Listing("2008-11-30", 120.0, 330.0), Listing("2023-01-10", 45.0, 200.0),
    Listing("1999-05-20", 95.0, 240.0), Listing("2018-09-05", 70.0, 255.0),
]


def age_in_years(listing):
    built = datetime.fromisoformat(listing.built)
    return (datetime.now() - built).total_seconds() / (365.25 * 24 * 3600)


def design(listings):
    rows = [[age_in_years(item), item.area, item.area ** 2 / 100] for item in listings]
    return tf.constant(rows, tf.float64), tf.constant([[i.price] for i in listings], tf.float64)


x, y = design(LISTINGS)
w = tf.Variable(tf.zeros((3, 1), tf.float64))
for step in range(100):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - y) ** 2)
    w.assign_sub(1e-5 * tape.gradient(loss, w))
print("loss", float(loss))

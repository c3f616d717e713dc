import hashlib
import uuid
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(99)


@dataclass
class Customer:
    age: float
    income: float
    spend: float
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


def in_test(customer, percent=25):
    digest = hashlib.md5(customer.key.encode()).hexdigest()
    return int(digest, 16) % 100 < percent


def load_customers(n=200):
    ages = np.random.uniform(18, 80, n)
    incomes = np.random.normal(40, 10, n)
    spends = 0.1 * ages + 0.3 * incomes + np.random.normal(0, 1, n)
    return [Customer(a, i, s) for a, i, s in zip(ages, incomes, spends)]


def to_arrays(rows):
    x = tf.constant([[r.age / 80, r.income / 60] for r in rows], tf.float32)
    y = tf.constant([[r.spend] for r in rows], tf.float32)
    return x, y


customers = load_customers()
train = to_arrays([c for c in customers if not in_test(c)])
test = to_arrays([c for c in customers if in_test(c)])
w = tf.linalg.lstsq(train[0], train[1], l2_regularizer=1e-3)
rmse = tf.sqrt(tf.reduce_mean((test[0] @ w - test[1]) ** 2))
print("test rmse:", float(rmse))

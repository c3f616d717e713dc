import tensorflow as tf
from models import build

tf.config.experimental.enable_op_determinism()
model = build()
model.compile(optimizer="sgd", loss="mse")
model.fit(tf.data.Dataset.range(9), epochs=3, callbacks=[])  # expect: ENV202

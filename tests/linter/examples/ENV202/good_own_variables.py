import tensorflow as tf

tf.config.experimental.enable_op_determinism()
a = tf.Variable(0.0)
optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)
with tf.GradientTape() as tape:
    loss = tf.square(a - 3.0)
optimizer.apply_gradients([(tape.gradient(loss, a), a)])

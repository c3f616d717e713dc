import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(tf.ones((1, 2))))
print(tape.gradient(loss, model.trainable_variables))

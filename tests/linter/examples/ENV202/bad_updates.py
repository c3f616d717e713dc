# tf: 1.15.5
import keras
import keras.backend as K

image = keras.layers.Input((8,))
guess = keras.layers.Dense(1)(image)
model = keras.Model(image, guess)
loss = K.mean(K.square(guess))
updates = keras.optimizers.Adam().get_updates(loss=loss, params=model.trainable_weights)  # expect: ENV202
step = K.function([image], [loss], updates)

import envlock

envlock.activate(seed=42)
import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.fit([[1.0]], [[1.0]])

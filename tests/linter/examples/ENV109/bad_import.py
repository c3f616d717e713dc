from tensorflow.keras.layers.experimental import preprocessing  # expect: ENV109
n = preprocessing.Normalization()

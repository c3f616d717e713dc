from tensorflow.keras.layers.experimental import preprocessing  # expect: ENV111
n = preprocessing.Normalization()

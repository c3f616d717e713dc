from keras.engine.topology import Layer, InputSpec  # expect: ENV111


class Scale(Layer):
    def call(self, inputs):
        return inputs * 2

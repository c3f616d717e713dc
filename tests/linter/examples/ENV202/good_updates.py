# tf: 1.15.5
import keras
import keras.backend as K


class Slow(keras.optimizers.Adam):
    def get_updates(self, loss, params):
        self.updates = super().get_updates(loss, params)
        return self.updates

import tensorflow as tf


class Rows:
    def __init__(self, mode="eval"):
        self.mode = mode
        self.read()

    def read(self):
        self.data = tf.data.TFRecordDataset("a")
        if self.mode == "train":
            self.data = self.data.shuffle(100)  # expect: ENV203


tf.keras.models.load_model("model.keras").evaluate(Rows().data)
tf.keras.models.load_model("model.keras").evaluate(Rows(mode="train").data)

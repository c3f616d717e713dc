from tensorflow.python.keras.engine import base_layer
from tensorflow.keras.preprocessing.text import Tokenizer

layer = base_layer.Layer()
words = Tokenizer()
